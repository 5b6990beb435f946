// SPDX-License-Identifier: Apache-2.0
// Networks and requests of the search's tests.
#pragma once

#include <fmt/format.h>

#include "models/models.hpp"
#include "search/search.hpp"

namespace rehearse::search::test {

/// Dense layers with ReLUs: `wide` ones have more weights than activations.
inline Network tower(int layers, std::int64_t width) {
    Network network{.name = fmt::format("tower{}", width), .layers = {}};
    network.layers.push_back({"input", Input{{width}}, {}, {width}});
    for (int i = 0; i < layers; ++i) {
        network.layers.push_back(
            {fmt::format("dense{}", i), MatMul{.m = 1, .n = width, .k = width, .bias = false}, {2 * i}, {width}});
        network.layers.push_back(
            {fmt::format("relu{}", i), Activation{Nonlinearity::relu, {width}}, {2 * i + 1}, {width}});
    }
    network.layers.push_back({"loss", SoftmaxLoss{width}, {2 * layers}, {1}});
    return network;
}

inline Request request_for(std::int64_t batch, int simulated) {
    Request request;
    request.devices = {8};
    request.job.global_batch = batch;
    request.job.optimizer = Optimizer::adam;
    request.simulated = simulated;
    return request;
}

/// Two blocks of mixtures of four experts, between dense layers.
inline Network mixture() { return models::load_network("gpt-h1024-a8-l2-v1024-e4@256"); }

}  // namespace rehearse::search::test
