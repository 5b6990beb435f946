// SPDX-License-Identifier: Apache-2.0
#include "run/fed_inputs.hpp"

#include <algorithm>
#include <string_view>

namespace rehearse::run {

namespace {

bool is_ids(const Op& op) {
    const auto* input = std::get_if<Input>(&op);
    return input != nullptr && input->vocabulary > 0;
}

}  // namespace

std::vector<FedInput> fed_inputs(const Network& network) {
    std::vector<FedInput> all;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        const auto* input = std::get_if<Input>(&layer.op);
        if (input == nullptr) continue;
        FedInput fed{.layer = static_cast<int>(i), .op = *input, .data_set = layer.name};
        constexpr std::string_view numbers = ".numbers";
        const std::string ids =
            layer.name.ends_with(numbers) ? layer.name.substr(0, layer.name.size() - numbers.size()) : std::string{};
        const bool same =
            std::ranges::any_of(network.layers, [&](const Layer& each) { return each.name == ids && is_ids(each.op); });
        if (same) fed.data_set = ids;
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
