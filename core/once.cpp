// SPDX-License-Identifier: Apache-2.0
#include "core/once.hpp"

#include <algorithm>

namespace rehearse {

bool made_once(const Layer& layer, const std::function<bool(int)>& once) {
    const auto* each = std::get_if<Elementwise>(&layer.op);
    const bool repeats = each != nullptr && each->function == "copy" && !layer.inputs.empty();
    if (repeats || std::holds_alternative<Input>(layer.op) || std::holds_alternative<Dropout>(layer.op)) return false;
    return std::ranges::all_of(layer.inputs, once);
}

std::vector<bool> made_once(const Network& network) {
    std::vector<bool> once;
    for (const Layer& layer : network.layers)
        once.push_back(
            made_once(layer, [&](int input) { return static_cast<bool>(once[static_cast<std::size_t>(input)]); }));
    return once;
}

double multiply_adds_once(const Network& network) {
    const std::vector<bool> once = made_once(network);
    double sum = 0;
    for (std::size_t i = 0; i < network.layers.size(); ++i)
        if (once[i]) sum += multiply_adds(network.layers[i].op);
    return sum;
}

}  // namespace rehearse
