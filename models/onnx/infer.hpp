// SPDX-License-Identifier: Apache-2.0
// Shapes of every value of an ONNX graph, and the values of the small constants that shapes are made of (ONNX's
// operator specification, opsets 1 to 21). It never calls libonnx's own inference, which crashes on damaged files.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/graph.hpp"

namespace rehearse::models {

// Elements: beyond it a size is a mistake. Times the largest size of a window, 2^20, it fits into 64 bits.
constexpr double largest_tensor = 1e12;

constexpr std::int64_t largest_kept = 1 << 22;  // elements of a constant whose values are kept in any case

/// The values of a tensor of the file; null where it is without values. Large ones, and those that lie in a file of
/// their own, are read only for who names the network's file; InputError where they are not where they should be.
std::shared_ptr<const std::vector<double>> data_of(const onnx::TensorProto& tensor, const std::string& path = {});

inline std::int64_t to_integer(double value) {
    constexpr double most = 9e18;
    if (std::isnan(value)) return 0;
    if (value >= most) return std::numeric_limits<std::int64_t>::max();
    if (value <= -most) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(value);
}

using Sizes = std::vector<std::int64_t>;

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
}

/// An axis or index that counts from behind where it is negative.
inline std::int64_t positive_modulo(std::int64_t value, std::int64_t size) { return value < 0 ? value + size : value; }

inline Shape without_last(const Shape& shape, std::size_t count) {
    return {shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(std::min(count, shape.size()))};
}

/// The sizes that two operands have together; nothing when they do not broadcast.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// An Einsum's equation written out: a letter for each axis of each operand and of the result, digits for those that
/// "..." stands for, and how large each is. `why_not`: why it does not fit its operands; empty where it does.
struct Einsum {
    std::vector<std::string> terms;
    std::string made;
    std::map<char, std::int64_t> sizes;
    std::string why_not;
};
Einsum einsum_of(std::string equation, const std::vector<Shape>& operands);

/// Large: one method a kind of operator whose sizes or values follow by a rule of their own.
class Inference {
public:
    explicit Inference(OnnxGraph& graph) : graph_(graph) {}
    /// Enters what the node makes. Sizes that cannot be known stay out, with the reason in why_unknown.
    void infer(const onnx::NodeProto& node);

private:
    using Data = std::shared_ptr<const std::vector<double>>;
    const Value& in(const onnx::NodeProto& node, int i) const;
    bool given(const onnx::NodeProto& node, int i) const { return i < node.input_size() && !node.input(i).empty(); }
    /// Of an input whose values must be known: InputError-free, nothing where they are not.
    std::optional<std::vector<std::int64_t>> known(const onnx::NodeProto& node, int i) const;
    std::optional<std::vector<std::int64_t>> axes_of(const onnx::NodeProto& node, int input, std::size_t rank) const;
    std::optional<std::size_t> axis_of(const onnx::NodeProto& node, std::size_t rank, std::int64_t otherwise) const;

    // infer_shapes.cpp: the sizes of each output, nothing where unknown.
    std::vector<std::optional<Shape>> shapes(const onnx::NodeProto& node);
    std::optional<Shape> shape_of_window(const onnx::NodeProto& node, bool pool) const;
    std::optional<Shape> shape_of_transposed(const onnx::NodeProto& node) const;
    std::optional<Shape> shape_of_reshape(const onnx::NodeProto& node) const;
    std::optional<Shape> shape_of_slice(const onnx::NodeProto& node) const;
    std::optional<Shape> shape_of_resize(const onnx::NodeProto& node) const;
    std::optional<Shape> shape_of_reduction(const onnx::NodeProto& node, std::size_t axes_since) const;
    std::vector<std::optional<Shape>> shapes_of_split(const onnx::NodeProto& node) const;
    std::vector<std::optional<Shape>> shapes_of_recurrent(const onnx::NodeProto& node, int gates) const;
    std::optional<Shape> shape_of_einsum(const onnx::NodeProto& node) const;
    /// Nothing while an operand's sizes are not known.
    std::optional<Einsum> einsum_of(const onnx::NodeProto& node) const;
    std::optional<Shape> shape_of_product(const onnx::NodeProto& node) const;
    std::optional<Shape> moved(const onnx::NodeProto& node) const;
    std::optional<Shape> picked(const onnx::NodeProto& node) const;
    std::optional<Shape> windows(const onnx::NodeProto& node) const;

    // infer_rare.cpp; nothing for an operator that is not among them.
    std::optional<std::vector<std::optional<Shape>>> shapes_of_rare(const onnx::NodeProto& node) const;
    std::optional<Shape> shape_of_fourier(const onnx::NodeProto& node) const;
    std::optional<Shape> shape_of_frames(const onnx::NodeProto& node) const;

    // infer_values.cpp
    Data values(const onnx::NodeProto& node, const Shape& shape, int output = 0) const;
    Data values_by_element(const onnx::NodeProto& node, const Shape& shape) const;
    int samples_of_constant(const onnx::NodeProto& node, const Shape& shape) const;
    bool repeats_beside_sequences(const onnx::NodeProto& node, const Shape& shape) const;
    double most_kept(const Value& value) const;

    // infer_places.cpp
    std::optional<Places> places_moved(const onnx::NodeProto& node, int output, Value& from, const Shape& shape) const;
    void follow(const onnx::NodeProto& node, int output, Value& value);

    // infer_values_moved.cpp
    Data values_moved(const onnx::NodeProto& node, const Shape& shape) const;
    Data values_joined(const onnx::NodeProto& node, const Shape& shape) const;
    Data values_picked(const onnx::NodeProto& node, const Shape& shape) const;
    Data value_of_piece(const onnx::NodeProto& node, const Shape& shape, int output) const;

    // infer_tables.cpp
    Data values_of_tables(const onnx::NodeProto& node, const Shape& shape) const;

    // infer_batch.cpp
    int batch_of(const onnx::NodeProto& node, int output, const Shape& shape, std::int64_t& lead) const;
    int batch_of_reshape(const Value& from, const Shape& shape, std::int64_t& lead) const;

    OnnxGraph& graph_;
    std::int64_t followed_ = 0;  ///< elements of weights without values whose places were followed
    mutable std::string why_;
};

/// Operators whose results hold integers or truth values.
bool makes_integers(const onnx::NodeProto& node);

/// Operators whose results are elements of what they take, none computed.
bool moves_alone(const onnx::NodeProto& node);

/// How far apart neighbours of what a Transpose makes lie, of whose operand they lie `strides` apart.
Sizes steps_of_transpose(const onnx::NodeProto& node, const Sizes& strides);

}  // namespace rehearse::models
