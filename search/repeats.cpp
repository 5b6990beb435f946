// SPDX-License-Identifier: Apache-2.0
#include "search/repeats.hpp"

#include <algorithm>

namespace rehearse::search {

namespace {

constexpr int longest_block = 64;  // layers

bool alike(const Layer& one, int at, const Layer& other, int other_at) {
    if (one.weights_of >= 0 || other.weights_of >= 0 || one.inputs.size() != other.inputs.size()) return false;
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
        if (at - one.inputs[i] != other_at - other.inputs[i]) return false;
    }
    return one.op == other.op;
}

/// Whether later layers read nothing of the blocks but the last one.
bool ends_alone(const Network& network, const Repeats& repeats) {
    const int end = repeats.begin + repeats.times * repeats.length;
    const auto inside = [&](int layer) { return layer >= repeats.begin && layer < end - repeats.length; };
    return std::none_of(network.layers.begin() + end, network.layers.end(), [&](const Layer& layer) {
        return inside(layer.weights_of) || std::ranges::any_of(layer.inputs, inside);
    });
}

Repeats longest_run(const Network& network) {
    const auto count = static_cast<int>(network.layers.size());
    const auto layer = [&](int i) -> const Layer& { return network.layers[static_cast<std::size_t>(i)]; };
    Repeats best;
    for (int length = 1; length <= longest_block && length < count; ++length) {
        if (2 * best.times * best.length > count) break;
        int run = 0;  // layers up to here that are like those a block further on
        for (int i = 0; i + length < count; ++i) {
            run = alike(layer(i), i, layer(i + length), i + length) ? run + 1 : 0;
            const int times = run / length + 1;
            if ((times - 1) * length > (best.times - 1) * best.length) best = {i + 1 - run, length, times};
        }
    }
    return best;
}

}  // namespace

Repeats repeats_of(const Network& network) {
    const Repeats run = longest_run(network);
    return ends_alone(network, run) ? run : Repeats{};
}

Network with_blocks(const Network& network, const Repeats& repeats, int times) {
    const int end = repeats.begin + repeats.times * repeats.length;  // of all
    const int kept_end = repeats.begin + times * repeats.length, fewer = end - kept_end;
    Network kept{.name = network.name, .layers = {}, .state = network.state};
    for (int i = 0; i < static_cast<int>(network.layers.size()); ++i) {
        if (i >= kept_end && i < end) continue;
        Layer layer = network.layers[static_cast<std::size_t>(i)];
        // Who reads the last of all blocks reads the last that is kept.
        const auto place = [&](int from) { return from >= kept_end ? from - fewer : from; };
        if (i >= end) {
            for (int& input : layer.inputs) input = place(input);
            if (layer.weights_of >= 0) layer.weights_of = place(layer.weights_of);
        }
        kept.layers.push_back(std::move(layer));
    }
    return kept;
}

}  // namespace rehearse::search
