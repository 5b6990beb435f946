// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/graph.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/shape_inference/implementation.h>

#include "core/error.hpp"
#include "core/file.hpp"

namespace rehearse::models {
namespace {

constexpr double too_many = 1e13;  // elements of one tensor: beyond it a size is a mistake, and products could overflow

// Sizes that are all known, positive and believable; else nothing.
std::optional<Shape> believable(const Shape& dims) {
    double product = 1;
    for (const std::int64_t dim : dims) {
        if (dim < 1 || (product *= static_cast<double>(dim)) > too_many) return std::nullopt;
    }
    return dims;
}

bool floating(int element) {
    return element == onnx::TensorProto::FLOAT || element == onnx::TensorProto::FLOAT16 ||
           element == onnx::TensorProto::BFLOAT16 || element == onnx::TensorProto::DOUBLE;
}

}  // namespace

OnnxGraph::OnnxGraph(const std::string& path) : path_(path) {
    read();
    check_attributes();
    find_input();
    infer_shapes();
    find_constants();
}

void OnnxGraph::read() {
    const std::string bytes = read_file(path_);
    if (bytes.empty()) fail("the file is empty");
    const google::protobuf::LogSilencer silence;  // protobuf reports to stderr by itself
    if (!model_.ParseFromString(bytes)) fail(fmt::format("not an ONNX file, or cut off ({} bytes)", bytes.size()));
    if (!model_.has_graph() || model_.graph().node_size() == 0) fail("not an ONNX file, or cut off: it has no graph");
    for (const auto& import : model_.opset_import()) {
        if (import.domain().empty() || import.domain() == "ai.onnx") opset_ = import.version();
    }
    if (graph().output_size() != 1)
        fail(fmt::format("it has {} outputs: a network must have exactly one", graph().output_size()));
    if (opset_ < 1) fail("cut off, or not a network: it names no operator set (opset_import)");
}

void OnnxGraph::find_input() {
    std::unordered_map<std::string, bool> initialized;
    for (const auto& tensor : graph().initializer()) initialized[tensor.name()] = true;
    onnx::ValueInfoProto* found = nullptr;
    for (auto& value : *model_.mutable_graph()->mutable_input()) {
        if (initialized.contains(value.name())) continue;
        if (found != nullptr) {
            fail(fmt::format("inputs '{}' and '{}': a network must read exactly one tensor", found->name(),
                             value.name()));
        }
        found = &value;
    }
    if (found == nullptr) fail("it has no input: every tensor is a constant");
    input_ = found->name();
    if (!floating(found->type().tensor_type().elem_type()))
        fail(fmt::format("input '{}' is not a floating-point tensor", input_));
    auto& shape = *found->mutable_type()->mutable_tensor_type()->mutable_shape();
    if (shape.dim_size() < 2) fail(fmt::format("input '{}' has no shape of the form batch x ...", input_));
    if (!shape.dim(0).has_dim_value() || shape.dim(0).dim_value() < 1) shape.mutable_dim(0)->set_dim_value(1);
    batch_ = shape.dim(0).dim_value();
    for (int i = 1; i < shape.dim_size(); ++i) {
        if (shape.dim(i).has_dim_value() && shape.dim(i).dim_value() > 0) continue;
        fail(fmt::format("input '{}': dimension {} ('{}') is left open; export the network with fixed sizes", input_, i,
                         shape.dim(i).dim_param()));
    }
}

// libonnx follows the arithmetic on shapes that exporters leave before a Reshape, but its Reshape reads only constants:
// make each target that it found one, until none is new.
bool OnnxGraph::settle_targets(const std::unordered_map<std::string, onnx::TensorShapeProto>& propagated) {
    bool settled = false;
    for (auto& node : *model_.mutable_graph()->mutable_node()) {
        if (node.op_type() != "Reshape" || node.input_size() < 2) continue;
        const auto target = propagated.find(node.input(1));
        const bool known = target != propagated.end() &&
                           std::ranges::all_of(target->second.dim(), [](const auto& d) { return d.has_dim_value(); });
        if (!known || targets_.contains(node.input(1))) continue;
        onnx::TensorProto& constant = *model_.mutable_graph()->add_initializer();
        constant.set_name(node.input(1) + "#target");
        constant.set_data_type(onnx::TensorProto::INT64);
        constant.add_dims(target->second.dim_size());
        for (const auto& dim : target->second.dim()) constant.add_int64_data(dim.dim_value());
        node.set_input(1, constant.name());
        targets_.insert(constant.name());
        settled = true;
    }
    return settled;
}

void OnnxGraph::infer_shapes() {
    const google::protobuf::LogSilencer silence;
    for (const auto& tensor : graph().initializer()) targets_.insert(tensor.name());
    if (model_.ir_version() < 4) model_.set_ir_version(4);  // initializers need not be inputs
    std::unordered_map<std::string, onnx::TensorShapeProto> propagated;
    try {
        do {
            propagated.clear();
            onnx::shape_inference::InferShapes(model_, onnx::OpSchemaRegistry::Instance(), {false, 0, true},
                                               &propagated);
        } while (settle_targets(propagated));
    } catch (const std::exception& error) {
        fail(fmt::format("libonnx refuses it: {}", error.what()));
    }
    for (const auto& value : graph().input()) remember(value);
    for (const auto& value : graph().value_info()) remember(value);
    for (const auto& value : graph().output()) remember(value);
    for (const auto& tensor : graph().initializer())
        types_[tensor.name()] = {believable({tensor.dims().begin(), tensor.dims().end()}), tensor.data_type()};
    if (!dims(input_)) fail(fmt::format("input '{}' is impossibly large", input_));
}

void OnnxGraph::remember(const onnx::ValueInfoProto& value) {
    const auto& tensor = value.type().tensor_type();
    Type& type = types_[value.name()];
    type.element = tensor.elem_type();
    if (!tensor.has_shape()) return;
    Shape dims;
    for (const auto& dim : tensor.shape().dim()) dims.push_back(dim.has_dim_value() ? dim.dim_value() : 0);
    type.dims = believable(dims);
}

void OnnxGraph::find_constants() {
    for (const auto& tensor : graph().initializer()) constants_[tensor.name()] = &tensor;
    for (const auto& node : graph().node()) {
        bool constant = true;
        for (const std::string& input : node.input()) {
            ++readers_[input];
            constant = constant && (input.empty() || constants_.contains(input));
        }
        if (!constant) continue;
        const onnx::TensorProto* value = nullptr;
        if (node.op_type() == "Constant" && node.attribute_size() > 0 && node.attribute(0).has_t())
            value = &node.attribute(0).t();
        for (const std::string& output : node.output()) constants_[output] = value;
    }
    for (const auto& output : graph().output()) ++readers_[output.name()];
}

std::optional<Shape> OnnxGraph::dims(const std::string& value) const {
    const auto found = types_.find(value);
    return found == types_.end() ? std::nullopt : found->second.dims;
}

std::optional<Shape> OnnxGraph::sample(const std::string& value) const {
    std::optional<Shape> shape = dims(value);
    if (!shape || shape->size() < 2 || shape->front() != batch_) return std::nullopt;
    shape->erase(shape->begin());
    return shape;
}

bool OnnxGraph::integral(const std::string& value) const {
    const auto found = types_.find(value);
    return found != types_.end() && found->second.element != 0 && !floating(found->second.element);
}

std::optional<double> OnnxGraph::scalar(const std::string& value) const {
    const auto found = constants_.find(value);
    if (found == constants_.end() || found->second == nullptr) return std::nullopt;
    const onnx::TensorProto& tensor = *found->second;
    if (tensor.data_type() != onnx::TensorProto::FLOAT) return std::nullopt;
    if (tensor.float_data_size() == 1) return tensor.float_data(0);
    float single = 0;
    if (tensor.raw_data().size() != sizeof single) return std::nullopt;
    std::memcpy(&single, tensor.raw_data().data(), sizeof single);  // ONNX is little-endian, as are our hosts
    return single;
}

int OnnxGraph::readers(const std::string& value) const {
    const auto found = readers_.find(value);
    return found == readers_.end() ? 0 : found->second;
}

void OnnxGraph::fail(std::string_view what) const { throw InputError(fmt::format("{}: {}", path_, what)); }

void OnnxGraph::fail(const onnx::NodeProto& node, std::string_view what) const {
    fail(fmt::format("{}: {}", describe(node), what));
}

}  // namespace rehearse::models
