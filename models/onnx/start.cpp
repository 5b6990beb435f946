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
    std::vector<float> values = graph.floats(start.value);
    if (static_cast<std::int64_t>(values.size()) != count) return {};
    const Shape dims = graph.dims(start.value).value_or(Shape{});
    if (!start.turned || dims.size() != 2) return values;
    const auto rows = static_cast<std::size_t>(dims[0]), columns = static_cast<std::size_t>(dims[1]);
    std::vector<float> turned(values.size());
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) turned[j * rows + i] = values[i * columns + j];
    return turned;
}

}  // namespace

std::vector<float> OnnxGraph::floats(const std::string& name) const {
    const Value& found = value(name);
    if (found.data) return {found.data->begin(), found.data->end()};
    if (!found.places || found.weights.size() != 1) return {};
    const auto& whole = value(found.weights.front()).data;
    if (!whole) return {};
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(found.places->size()));
    for (const std::int32_t place : found.places->all())
        values.push_back(static_cast<float>(whole->at(static_cast<std::size_t>(place))));
    return values;
}

void OnnxGraph::forget(const std::string& tensor) {
    if (made_of_.empty()) {
        for (auto& [name, value] : values_)
            if (value.weights.size() == 1) made_of_[value.weights.front()].push_back(&value);
    }
    for (Value* value : made_of_[tensor]) value->data = nullptr, value->places = nullptr;
    const auto found = given_.find(tensor);
    if (found != given_.end()) found->second.data = nullptr;
}

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

void Import::begin_as(int layer, const std::vector<std::string>& values) {
    const auto found = starts.find(layer);
    if (found == starts.end() || found->second.empty()) return;  // another layer trains them
    found->second.clear();
    for (const std::string& value : values)
        if (!graph.value(value).weights.empty()) found->second.push_back({value});
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

// What the layer's tensors begin with, and why no kernel runs it, if so; `taken`: of each initializer, by all layers so
// far that train some of it.
void Import::begin_with(const Layer& layer, const std::vector<Start>& start, Given& all,
                        std::map<std::string, std::int64_t>& taken) const {
    const std::vector<WeightTensor> tensors = rehearse::weights(layer.op);
    for (std::size_t k = 0; k < tensors.size() && k < start.size(); ++k) {
        const std::string& name = start[k].value;
        const std::int64_t count = elements(tensors[k].shape);
        if (graph.value(name).computed && all.not_run.empty())
            all.not_run = fmt::format("its weights '{}' are computed from others: no kernel takes their slope", name);
        const std::vector<float> values = values_of(graph, start[k], count);
        all.weights.reserve(all.weights.size() + values.size());  // a file without weights may say any size
        all.weights.insert(all.weights.end(), values.begin(), values.end());
        const std::vector<std::string>& behind = graph.value(name).weights;
        if (behind.size() != 1 || graph.uniform(behind.front())) continue;
        std::int64_t& sum = taken[behind.front()];
        sum += count;
        if (sum > elements(graph.dims(behind.front()).value_or(Shape{})) && all.not_run.empty())
            all.not_run = fmt::format("its weights '{}' are another layer's, too, in another form", behind.front());
    }
    if (static_cast<std::int64_t>(all.weights.size()) != parameters(layer.op)) all.weights.clear();
}

// Each initializer is let go of when the last layer that begins with some of it has it: the file's weights are not all
// in memory twice.
void Import::give(Network& network, OnnxGraph& from) const {
    std::map<std::string, std::int64_t> taken;
    std::map<std::string, int> last;  // layer, by the initializer
    for (const auto& [layer, tensors] : starts)
        for (const Start& start : tensors)
            for (const std::string& tensor : graph.value(start.value).weights) last[tensor] = layer;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        Layer& layer = network.layers[i];
        Given all;
        if (const auto found = given.find(static_cast<int>(i)); found != given.end()) all = found->second;
        const auto start = starts.find(static_cast<int>(i));
        if (start != starts.end() && graph.keeps_values() && layer.weights_of < 0)
            begin_with(layer, start->second, all, taken);
        for (const Start& each : start == starts.end() ? std::vector<Start>{} : start->second)
            for (const std::string& tensor : graph.value(each.value).weights)
                if (last[tensor] == static_cast<int>(i)) from.forget(tensor);
        if (all.weights.empty() && all.state.empty() && all.fixed.empty() && all.places.empty() &&
            all.data_set.empty() && all.not_run.empty())
            continue;
        layer.given = std::make_shared<const Given>(std::move(all));
    }
}

}  // namespace rehearse::models
