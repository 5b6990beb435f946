// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/hand_overs.hpp"

#include <algorithm>

#include "core/gathered_again.hpp"
#include "core/index.hpp"

namespace rehearse::schedule {

std::vector<bool> same_on_all(const Part& part, const std::string& axis) {
    std::vector<bool> same;
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const Layer& layer = part.network.layers[i];
        if (const auto* op = std::get_if<Communication>(&layer.op)) {
            same.push_back(op->axis == axis && (op->movement == Movement::sum || op->movement == Movement::gather));
            continue;
        }
        const bool alike =
            std::ranges::all_of(layer.inputs, [&](int input) { return static_cast<bool>(same[at(input)]); });
        same.push_back(alike && part.origins[i].cuts.empty());
    }
    return same;
}

std::vector<HandOver> hand_overs(const Part& part, const Scatter& scatter) {
    const std::vector<Layer>& layers = part.network.layers;
    const std::vector<bool> needed = needs_input_gradient(part.network), same = same_on_all(part, scatter.axis);
    std::vector<int> last_reader(layers.size(), -1);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        for (const int input : layers[i].inputs) last_reader[at(input)] = static_cast<int>(i);
    }
    // What each layer's output adds behind it and takes away behind its last reader.
    std::vector<HandOver> handed(layers.size() + 1);
    const auto add = [&](std::size_t end, std::size_t layer, std::int64_t sign) {
        const Shape& shape = layers[layer].output;
        const bool scattered = scatter.parts > 1 && same[layer] && !shape.empty() && shape.front() % scatter.parts == 0;
        const std::int64_t count = elements(shape) / (scattered ? scatter.parts : 1);
        handed[end].outputs += sign;
        handed[end].output_elements += sign * count;
        if (!needed[layer] && weights_read(layers[layer].op) == 0) return;
        handed[end].gradients += sign;
        handed[end].gradient_elements += sign * count;
    };
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (last_reader[i] < 0) continue;
        add(i + 1, i, 1);
        add(at(last_reader[i]) + 1, i, -1);
    }
    for (std::size_t end = 1; end < handed.size(); ++end) {
        handed[end].outputs += handed[end - 1].outputs;
        handed[end].output_elements += handed[end - 1].output_elements;
        handed[end].gradients += handed[end - 1].gradients;
        handed[end].gradient_elements += handed[end - 1].gradient_elements;
    }
    for (std::size_t end = 1; end < handed.size(); ++end) {
        if (gathers_again(layers[end - 1])) handed[end] = handed[end - 1];
    }
    return handed;
}

}  // namespace rehearse::schedule
