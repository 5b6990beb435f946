// SPDX-License-Identifier: Apache-2.0
// Normalizations whose scale or shift is not a trained tensor as it lies: computed of one (1 + w, exp(w)), made of
// samples, or fixed. Who runs the network gets the normalization alone and what it is scaled and shifted by behind it:
//
//   x -- Normalization -- Mul (1 + w) -- Add b --
#include "models/onnx/infer.hpp"
#include "models/onnx/made_nodes.hpp"

namespace rehearse::models {
namespace {

// Whether a scale or shift of `count` values changes nothing: all of them are `number`.
bool is_all(const Value& value, double number, std::int64_t count) {
    return value.kind == Value::Kind::constant && value.weights.empty() && value.data &&
           static_cast<std::int64_t>(value.data->size()) == count &&
           std::ranges::all_of(*value.data, [&](double each) { return each == number; });
}

bool is_own(const Value& value) { return !value.weights.empty() && !value.computed; }

}  // namespace

// False where a kernel of the whole normalization does it, and of any other node.
bool OnnxGraph::put_scaled(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open) {
    const std::string& type = node.op_type();
    const bool batch = type == "BatchNormalization",
               features = type == "LayerNormalization" || type == "RMSNormalization";
    if (!keeps_values_ || node.output_size() < 1 || node.input_size() < 2 ||
        (!batch && !features && !is_one_of(type, {"InstanceNormalization", "GroupNormalization"})))
        return false;
    const auto size = dims(node.input(0)), scales = dims(node.input(1));
    const bool shifted = node.input_size() > 2 && !node.input(2).empty();
    if (!size || size->size() < 2 || !scales) return false;
    const std::int64_t count = elements(*scales);
    const Value &scale = value(node.input(1)), &shift = value(shifted ? node.input(2) : "");
    const bool scaled = !is_all(scale, 1, count), moved = shifted && !is_all(shift, 0, count);
    const bool same_kind = scaled == moved && is_own(scale) == is_own(shift);  // which batch normalization wants
    if ((!scaled || is_own(scale)) && (!moved || is_own(shift)) && (!batch || same_kind)) return false;
    if (!features && count != (*size)[1]) return false;  // of groups
    const std::string &made = node.output(0), &name = node.name().empty() ? made : node.name();
    std::vector<onnx::NodeProto> nodes;
    const auto same = [&](const char* what, float number) {
        nodes.push_back(made_by("Constant", name + what, {}, made + what));
        auto& values = attribute(nodes.back(), "value_floats", onnx::AttributeProto::FLOATS);
        for (std::int64_t i = 0; i < count; ++i) values.add_floats(number);
        return made + what;
    };
    onnx::NodeProto plain = node;
    plain.set_input(1, same(".ones", 1));
    if (shifted) plain.set_input(2, same(".zeros", 0));
    std::string last = made + ".plain";
    plain.set_output(0, last);
    nodes.push_back(plain);
    const auto put = [&](const char* by, const char* what, std::string operand, const std::string& to) {
        if (!features && size->size() > 2) {  // one value a channel
            nodes.push_back(made_by("Unsqueeze", name + what + ".channels", {operand}, made + what + ".channels"));
            operand = made + what + ".channels";
            auto& axes = attribute(nodes.back(), "axes", onnx::AttributeProto::INTS);
            for (std::size_t axis = 1; axis + 1 < size->size(); ++axis) axes.add_ints(static_cast<std::int64_t>(axis));
        }
        nodes.push_back(made_by(by, name + what, {last, operand}, to));
        last = to;
    };
    if (scaled) put("Mul", ".scale", node.input(1), moved ? made + ".scaled" : made);
    if (moved) put("Add", ".shift", node.input(2), made);
    open_up(std::move(nodes), open);
    return true;
}

}  // namespace rehearse::models
