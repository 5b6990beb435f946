// SPDX-License-Identifier: Apache-2.0
// What running a network takes of its file beside its operators: the values that weights begin with, what masks and
// tables hold, and which layers no kernel runs as the file means them.
#include <algorithm>

#include <fmt/format.h>

#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

// The values of one tensor of a layer; empty where the file does not have them.
std::vector<float> values_of(const OnnxGraph& graph, const Start& start, std::int64_t count) {
    const Value& value = graph.value(start.value);
    if (!value.data || static_cast<std::int64_t>(value.data->size()) != count) return {};
    std::vector<float> values(value.data->begin(), value.data->end());
    if (!start.turned || !value.dims || value.dims->size() != 2) return values;
    const auto rows = static_cast<std::size_t>((*value.dims)[0]), columns = static_cast<std::size_t>((*value.dims)[1]);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            values[j * rows + i] = static_cast<float>((*value.data)[i * columns + j]);
    return values;
}

}  // namespace

std::int64_t in_sample(const Value& value, const Shape& sample, std::int64_t axis) {
    const auto rank = static_cast<std::int64_t>(value.dims->size());
    if (axis < 0) axis += rank;
    if (static_cast<std::int64_t>(sample.size()) == rank) return axis;
    const std::int64_t gone = value.batch >= 0 ? value.batch : 0;
    if (axis == gone) return -1;
    return axis > gone ? axis - 1 : axis;
}

std::optional<std::size_t> axis_of_sample(const Value& value, const Shape& sample, std::int64_t axis) {
    const std::int64_t found = in_sample(value, sample, axis);
    if (found < 0 || static_cast<std::size_t>(found) >= sample.size()) return std::nullopt;
    return static_cast<std::size_t>(found);
}

void Import::not_run(int layer, const std::string& why) {
    std::string& reason = given[layer].not_run;
    if (reason.empty()) reason = why;
}

std::optional<Shape> Import::beside_samples(const onnx::NodeProto& node, const Shape& dims) const {
    const Value& made = graph.value(node.output(0));
    const auto sample = graph.sample(node.output(0));
    if (!made.dims || !sample) return std::nullopt;
    Shape own = dims;
    if (sample->size() < made.dims->size()) {
        const auto gone = made.batch >= 0 ? made.batch : 0;
        const auto at = static_cast<std::ptrdiff_t>(own.size()) - static_cast<std::ptrdiff_t>(made.dims->size()) + gone;
        if (at >= 0) {
            const std::int64_t size = own[static_cast<std::size_t>(at)];
            const bool repeated = graph.open_batch() && size == graph.batch() && made.lead == 1 && made.batch >= 0;
            if (size != 1 && !repeated) return std::nullopt;
            own.erase(own.begin() + at);
        }
    }
    while (own.size() > sample->size() && own.front() == 1) own.erase(own.begin());
    if (own.empty()) own.push_back(1);
    if (own.size() > sample->size()) return std::nullopt;
    return own;
}

auto Import::values_beside(const onnx::NodeProto& node, const Value& value) const -> std::optional<Beside> {
    const Value& made = graph.value(node.output(0));
    if (!value.dims || !value.data || !made.dims) return std::nullopt;
    const std::vector<double>& data = *value.data;
    const auto at = static_cast<std::ptrdiff_t>(value.dims->size()) - static_cast<std::ptrdiff_t>(made.dims->size()) +
                    std::max(0, made.batch);
    const bool repeated = at >= 0 && made.batch >= 0 && graph.batch() > 1 && made.lead == 1 &&
                          (*value.dims)[static_cast<std::size_t>(at)] == graph.batch();
    Shape one = *value.dims;
    std::vector<float> values;
    if (repeated) {
        one[static_cast<std::size_t>(at)] = 1;
        const auto inner = static_cast<std::size_t>(elements(Shape(one.begin() + at, one.end())));
        const std::size_t line = inner * static_cast<std::size_t>(graph.batch());
        for (std::size_t i = 0; i < data.size(); ++i) {
            const std::size_t first = i / line * line + i % inner;
            if (data[i] != data[first]) return std::nullopt;
            if (i == first) values.push_back(static_cast<float>(std::clamp(data[i], -1e38, 1e38)));
        }
    } else {  // infinity times zero is no number; the lowest float hides as well
        for (const double each : data) values.push_back(static_cast<float>(std::clamp(each, -1e38, 1e38)));
    }
    const auto shape = beside_samples(node, one);
    if (!shape) return std::nullopt;
    return Beside{*shape, std::move(values)};
}

int Import::fixed_layer(const onnx::NodeProto& node, const std::string& what, const Shape& shape,
                        std::vector<float> values) {
    onnx::NodeProto named;
    named.set_name(name_for(node) + "." + what);
    Elementwise op{.function = "copy", .shape = shape, .inputs = {}};
    op.constants = {shape};
    const int made = builder.layer(name_for(named), std::move(op), {});
    if (static_cast<std::int64_t>(values.size()) == elements(shape)) {
        given[made].fixed = {std::move(values)};
    } else if (graph.keeps_values()) {
        not_run(made, "what it holds is not known");
    }
    return made;
}

void Import::give(Network& network) const {
    std::map<std::string, std::int64_t> taken;  // of each initializer, by all layers that train some of it
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        Layer& layer = network.layers[i];
        Given all;
        if (const auto found = given.find(static_cast<int>(i)); found != given.end()) all = found->second;
        const auto start = starts.find(static_cast<int>(i));
        if (start != starts.end() && graph.keeps_values() && layer.weights_of < 0) {
            const std::vector<WeightTensor> tensors = rehearse::weights(layer.op);
            for (std::size_t k = 0; k < tensors.size() && k < start->second.size(); ++k) {
                const std::int64_t count = elements(tensors[k].shape);
                if (graph.value(start->second[k].value).computed && all.not_run.empty())
                    all.not_run = fmt::format("its weights '{}' are computed from others: no kernel takes their slope",
                                              start->second[k].value);
                const std::vector<float> values = values_of(graph, start->second[k], count);
                all.weights.insert(all.weights.end(), values.begin(), values.end());
                const std::vector<std::string>& behind = graph.value(start->second[k].value).weights;
                if (behind.size() != 1 || graph.uniform(behind.front())) continue;
                std::int64_t& sum = taken[behind.front()];
                sum += count;
                if (sum > elements(graph.dims(behind.front()).value_or(Shape{})) && all.not_run.empty())
                    all.not_run =
                        fmt::format("its weights '{}' are another layer's, too, in another form", behind.front());
            }
            if (static_cast<std::int64_t>(all.weights.size()) != parameters(layer.op)) all.weights.clear();
        }
        if (all.weights.empty() && all.state.empty() && all.fixed.empty() && all.places.empty() && all.not_run.empty())
            continue;
        layer.given = std::make_shared<const Given>(std::move(all));
    }
}

}  // namespace rehearse::models
