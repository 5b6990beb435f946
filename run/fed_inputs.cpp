// SPDX-License-Identifier: Apache-2.0
#include "run/fed_inputs.hpp"

#include <algorithm>

namespace rehearse::run {

std::vector<FedInput> fed_inputs(const Network& network) {
    std::vector<FedInput> all;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        const auto* input = std::get_if<Input>(&layer.op);
        if (input == nullptr) continue;
        FedInput fed{.layer = static_cast<int>(i), .op = *input, .data_set = layer.name};
        if (layer.given != nullptr && !layer.given->data_set.empty()) fed.data_set = layer.given->data_set;
        if (layer.given != nullptr && !layer.given->places.empty()) fed.places = layer.given->places.front();
        all.push_back(std::move(fed));
    }
    return all;
}

std::vector<FedInput> fed_inputs(const Network& network, bool integers) {
    std::vector<FedInput> all = fed_inputs(network);
    std::erase_if(all, [&](const FedInput& input) { return input.integers() != integers; });
    return all;
}

}  // namespace rehearse::run
