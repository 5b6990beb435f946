// SPDX-License-Identifier: Apache-2.0
// An .onnx file, read, checked and with the shapes that libonnx infers: what the importer asks of it. Only import_onnx*
// and onnx_* include this header; libonnx's types go no further.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <onnx/onnx_pb.h>

#include "core/op.hpp"

namespace rehearse::models {

/// "Conv node 'n0'", or by what it makes when it has no name.
std::string describe(const onnx::NodeProto& node);

bool has(const onnx::NodeProto& node, std::string_view attribute);
std::int64_t integer(const onnx::NodeProto& node, std::string_view attribute, std::int64_t otherwise);
double number(const onnx::NodeProto& node, std::string_view attribute, double otherwise);
std::string text(const onnx::NodeProto& node, std::string_view attribute, std::string_view otherwise);

class OnnxGraph {
public:
    /// InputError for whatever is wrong with the file.
    explicit OnnxGraph(const std::string& path);

    const onnx::GraphProto& graph() const { return model_.graph(); }
    std::int64_t opset() const { return opset_; }
    /// The one tensor that is fed in; a batch left open is 1.
    const std::string& input() const { return input_; }
    const std::string& output() const { return graph().output(0).name(); }
    /// The sizes of a value of any kind, batch included; nothing where libonnx cannot infer them.
    std::optional<Shape> dims(const std::string& value) const;
    /// Of an activation: without the batch; nothing when unknown or when the first dimension is not the batch.
    std::optional<Shape> sample(const std::string& value) const;
    /// Weights, shapes and whatever is computed from them alone.
    bool constant(const std::string& value) const { return constants_.contains(value); }
    /// Holds whole numbers: the arithmetic on shapes that exporters leave in the graph.
    bool integral(const std::string& value) const;
    std::optional<double> scalar(const std::string& value) const;
    int readers(const std::string& value) const;
    /// `otherwise` stands for each of `size` values; InputError when there is another number of them.
    std::vector<std::int64_t> integers(const onnx::NodeProto& node, std::string_view attribute, std::size_t size,
                                       std::int64_t otherwise) const;

    [[noreturn]] void fail(std::string_view what) const;
    [[noreturn]] void fail(const onnx::NodeProto& node, std::string_view what) const;

private:
    void read();
    void check_attributes() const;
    void find_input();
    bool settle_targets(const std::unordered_map<std::string, onnx::TensorShapeProto>& propagated);
    void infer_shapes();
    void find_constants();
    void remember(const onnx::ValueInfoProto& value);

    std::string path_;
    onnx::ModelProto model_;
    std::int64_t opset_ = 0;
    std::int64_t batch_ = 1;
    std::string input_;
    struct Type {
        std::optional<Shape> dims;
        int element = 0;
    };
    std::unordered_map<std::string, Type> types_;
    std::unordered_map<std::string, const onnx::TensorProto*> constants_;  // null: computed, value not kept
    std::unordered_map<std::string, int> readers_;
    std::unordered_set<std::string> targets_;  // constants from the file, and those that settle_targets made
};

}  // namespace rehearse::models
