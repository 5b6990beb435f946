// SPDX-License-Identifier: Apache-2.0
// Weights and gradients under the names of their layers, for other programs, and back.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/data/hdf5.hpp"
#include "run/train.hpp"

namespace rehearse::run {

namespace {

constexpr const char* statistics = "statistics";  // a BatchNorm's running mean, then variance

void write_tensors(const H5& file, const Network& network, const Checkpoint& checkpoint,
                   std::vector<float> LayerState::*which, const char* what) {
    write_attribute(file, "schema", fmt::format("rehearse.{}/1", what));
    write_attribute(file, "network", network.name);
    write_attribute(file, "steps", checkpoint.steps);
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        const std::span<const float> values = checkpoint.layers[i].*which;
        const std::vector<float>& running = checkpoint.layers[i].statistics;
        const bool keeps_running = which == &LayerState::weights && !running.empty();
        if (values.empty() && !keeps_running) continue;
        const H5 group = make_group(file, group_name(layer.name));
        std::size_t begin = 0;
        for (const WeightTensor& tensor : weights(layer.op)) {
            const std::size_t count = at(elements(tensor.shape));
            write(group, tensor.name, values.subspan(begin, count), tensor.shape);
            begin += count;
        }
        if (keeps_running) write(group, statistics, running);
    }
}

std::vector<float> tensor_in(const H5& group, const std::string& name, const Shape& shape, const std::string& where) {
    const H5 stored = find(group, name);
    if (!stored || !is_data_set(stored)) throw InputError(fmt::format("{}: has no '{}'", where, name));
    const Shape found = shape_of(stored);
    if (elements(found) != elements(shape)) {
        throw InputError(
            fmt::format("{}: '{}' is {}, the network has {}", where, name, to_string(found), to_string(shape)));
    }
    return floats_in(stored, fmt::format("{}: {}", where, name));
}

// Of a checkpoint all tensors lie one after the other in one data set.
std::vector<float> all_weights(const H5& group, const Op& op, const std::string& where) {
    const std::vector<WeightTensor> tensors = weights(op);
    const H5 first = find(group, "weights");
    if (first && is_data_set(first) && elements(shape_of(first)) == parameters(op)) return floats_in(first, where);
    std::vector<float> values;
    for (const WeightTensor& tensor : tensors) {
        const std::vector<float> more = tensor_in(group, tensor.name, tensor.shape, where);
        values.insert(values.end(), more.begin(), more.end());
    }
    return values;
}

/// What a layer of a file has, for a layer of the network.
void give_layer(Layer& layer, const H5& group, const std::string& where) {
    Given given = layer.given == nullptr ? Given{} : *layer.given;
    given.weights = all_weights(group, layer.op, where);
    const auto* norm = std::get_if<BatchNorm>(&layer.op);
    if (norm != nullptr && find(group, statistics))
        given.state = tensor_in(group, statistics, {2 * norm->channels}, where);
    layer.given = std::make_shared<const Given>(std::move(given));
}

/// "layer5.fc1" of a file with "layer0.fc1" to "layer3.fc1" is as "layer1.fc1"; empty where it has none of them.
std::string earlier_of_its_kind(const H5& file, const std::string& name) {
    constexpr const char* digits = "0123456789";
    const std::size_t begin = name.find_first_of(digits);
    if (begin == std::string::npos) return {};
    const std::size_t end = std::min(name.find_first_not_of(digits, begin), name.size());
    const auto numbered = [&](std::int64_t number) {
        return name.substr(0, begin) + std::to_string(number) + name.substr(end);
    };
    const std::int64_t own = parse_int(name.substr(begin, end - begin), name);
    const std::int64_t first = find(file, numbered(0)) ? 0 : 1;
    std::int64_t count = 0;
    while (count < own && find(file, numbered(first + count))) ++count;
    return count == 0 || own < first ? std::string{} : numbered(first + (own - first) % count);
}

}  // namespace

void save_weights(const std::filesystem::path& file, const Network& network, const Checkpoint& checkpoint) {
    write_file(file, [&](const H5& to) { write_tensors(to, network, checkpoint, &LayerState::weights, "weights"); });
}

void save_gradients(const std::filesystem::path& file, const Network& network, const Checkpoint& checkpoint) {
    write_file(file,
               [&](const H5& to) { write_tensors(to, network, checkpoint, &LayerState::gradients, "gradients"); });
}

void give_weights(Network& network, const std::filesystem::path& path) {
    const H5 file = open_file(path);
    for (Layer& layer : network.layers) {
        const std::string name = group_name(layer.name);
        const H5 group = find(file, name);
        if (!group) {
            if (parameters(layer.op) == 0) continue;
            throw InputError(fmt::format("{}: has no layer '{}': one group a layer is needed, as --save writes them",
                                         path.string(), name));
        }
        give_layer(layer, group, fmt::format("{}: layer '{}'", path.string(), name));
    }
}

Grown grow_weights(Network& network, const std::filesystem::path& path, bool copies) {
    const H5 file = open_file(path);
    Grown grown;
    for (Layer& layer : network.layers) {
        if (parameters(layer.op) == 0) continue;
        std::string name = group_name(layer.name);
        const bool there = static_cast<bool>(find(file, name));
        if (!there) name = copies ? earlier_of_its_kind(file, name) : std::string{};
        int& count = there ? grown.kept : name.empty() ? grown.fresh : grown.copied;
        count += 1;
        if (name.empty()) continue;
        give_layer(layer, find(file, name),
                   fmt::format("{}: layer '{}', which '{}' begins with", path.string(), name, layer.name));
    }
    if (grown.kept > 0) return grown;
    throw InputError(fmt::format("network '{}' has no layer of {}: a network grows by layers with other names",
                                 network.name, path.string()));
}

}  // namespace rehearse::run
