// SPDX-License-Identifier: Apache-2.0
// Tensors that an export for inference computed of others, and that the file has besides: PyTorch calls them "onnx::"
// and a number. What they were made of is put back as nodes, as an export for training has them:
//
//   words.weight {v, w} -- Gather                  words.weight -- Gather
//   onnx::MatMul_9 {w, v}, the same turned   =>          \-- Transpose -- onnx::MatMul_9
//
// What is taken from 1, is a square, or is repeated for each sample, likewise.
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "models/onnx/made_nodes.hpp"

namespace rehearse::models {
namespace {

constexpr std::string_view nameless = "onnx::";

bool turned_dims(const Value& a, const Value& b) {
    return a.dims && b.dims && a.dims->size() == 2 && b.dims->size() == 2 && (*a.dims)[0] == (*b.dims)[1] &&
           (*a.dims)[1] == (*b.dims)[0];
}

bool is_turned(const Value& a, const Value& b) {
    if (!turned_dims(a, b)) return false;
    const auto rows = static_cast<std::size_t>((*a.dims)[0]), columns = static_cast<std::size_t>((*a.dims)[1]);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            if ((*a.data)[i * columns + j] != (*b.data)[j * rows + i]) return false;
    return true;
}

bool is_rest_to_one(const Value& a, const Value& b) {
    return a.dims == b.dims && std::ranges::equal(*a.data, *b.data, [](double x, double y) {
               return static_cast<float>(1 - static_cast<float>(y)) == static_cast<float>(x);
           });
}

bool is_square(const Value& a, const Value& b) {
    return a.dims == b.dims && std::ranges::equal(*a.data, *b.data, [](double x, double y) {
               return static_cast<float>(y) * static_cast<float>(y) == static_cast<float>(x);
           });
}

// Whether a constant holds the same for each sample, as the first dimension has them.
bool is_repeated(const Value& value, std::int64_t batch) {
    if (batch < 2 || value.dims->size() < 2 || value.dims->front() != batch) return false;
    const auto one = static_cast<std::ptrdiff_t>(value.data->size()) / batch;
    for (std::int64_t i = 1; i < batch; ++i)
        if (!std::equal(value.data->begin(), value.data->begin() + one, value.data->begin() + i * one)) return false;
    return true;
}

// The nodes that make a tensor of another one; none where it is not made so.
std::vector<onnx::NodeProto> made_of(const std::string& name, const Value& value, const std::string& other,
                                     const Value& from) {
    if (uniform_or_absent(value) || uniform_or_absent(from)) return {};
    if (is_rest_to_one(value, from)) {
        onnx::NodeProto one = made_by("Constant", name + ".one", {}, name + ".one");
        attribute(one, "value_float", onnx::AttributeProto::FLOAT).set_f(1);
        return {one, made_by("Sub", name, {name + ".one", other}, name)};
    }
    if (is_square(value, from)) return {made_by("Mul", name, {other, other}, name)};
    if (value.dims == from.dims) return {};
    if (is_turned(value, from)) {
        onnx::NodeProto turned = made_by("Transpose", name, {other}, name);
        auto& order = attribute(turned, "perm", onnx::AttributeProto::INTS);
        order.add_ints(1);
        order.add_ints(0);
        return {turned};
    }
    if (*value.data != *from.data) return {};
    return {integers_as(name + ".shape", *value.dims), made_by("Reshape", name, {other, name + ".shape"}, name)};
}

using Values = std::unordered_map<std::string, Value>;

// Tensors without a name that hold the same for each sample: of one they are tensors of their own.
void take_apart(const onnx::GraphProto& graph, std::int64_t batch, Values& given, std::vector<onnx::NodeProto>& nodes) {
    for (const auto& tensor : graph.initializer()) {
        const std::string& name = tensor.name();
        const auto found = given.find(name);
        if (!name.starts_with(nameless) || found == given.end() || found->second.weights.empty() ||
            uniform_or_absent(found->second) || !is_repeated(found->second, batch))
            continue;
        Value one = found->second;
        const std::string alone = name + ".one";
        nodes.push_back(integers_as(name + ".shape", *one.dims));
        nodes.push_back(made_by("Expand", name, {alone, name + ".shape"}, name));
        one.dims->front() = 1;
        one.weights = {alone};
        const auto count = static_cast<std::ptrdiff_t>(elements(*one.dims));
        one.data = std::make_shared<const std::vector<double>>(one.data->begin(), one.data->begin() + count);
        given.erase(found);
        given[alone] = std::move(one);
    }
}

}  // namespace

// A tensor without a name that is a named one, turned, in another shape or taken from 1: the named one is what training
// changes.
std::vector<onnx::NodeProto> OnnxGraph::moved_tensors() {
    std::vector<onnx::NodeProto> nodes;
    std::vector<std::string> made;
    bool unseen = false;
    std::map<std::int64_t, std::vector<std::string>> named;  // by their number of elements
    for (const auto& tensor : model_.graph().initializer()) {
        const Value& value = given_.at(tensor.name());
        if (!tensor.name().starts_with(nameless) && !value.weights.empty())
            named[elements(*value.dims)].push_back(tensor.name());
    }
    for (const auto& tensor : model_.graph().initializer()) {
        const std::string& name = tensor.name();
        const Value& value = given_.at(name);
        if (!name.starts_with(nameless) || value.weights.empty()) continue;
        for (const std::string& other : named[elements(*value.dims)]) {
            const Value& from = given_.at(other);
            unseen = unseen || (!value.data && turned_dims(value, from) && value.dims->front() != value.dims->back() &&
                                name.starts_with("onnx::MatMul") && is_table(other));
            const std::vector<onnx::NodeProto> making = made_of(name, value, other, from);
            nodes.insert(nodes.end(), making.begin(), making.end());
            if (making.empty()) continue;
            made.push_back(name);
            break;
        }
    }
    for (const std::string& name : made) given_.erase(name);
    if (!open_batch_) take_apart(model_.graph(), batch_, given_, nodes);
    if (unseen)
        ++notes_
            ["a dense layer has the sizes of a table, turned: whether both are one tensor cannot be seen in an "
             "export for inference without weights"];
    return nodes;
}

void OnnxGraph::unfold_tensors() {
    std::vector<const onnx::NodeProto*> all;
    for (const auto& nodes : {moved_tensors(), distance_tables()})
        for (const onnx::NodeProto& node : nodes) all.push_back(&made_.emplace_back(node));
    nodes_.insert(nodes_.begin(), all.begin(), all.end());
}

}  // namespace rehearse::models
