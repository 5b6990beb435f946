// SPDX-License-Identifier: Apache-2.0
// What tests ask of networks that were imported.
#pragma once

#include <string>

#include "core/network.hpp"
#include "core/op.hpp"

namespace rehearse::models {

/// Multiply-adds of a sample, forward, of all layers.
inline double products(const Network& network) {
    double sum = 0;
    for (const Layer& layer : network.layers) sum += multiply_adds(layer.op);
    return sum;
}

/// "layer: reason" of the first layer that `run` refuses; empty where it takes all.
inline std::string why_not_run(const Network& network) {
    for (const Layer& layer : network.layers)
        if (layer.given != nullptr && !layer.given->not_run.empty()) return layer.name + ": " + layer.given->not_run;
    return "";
}

}  // namespace rehearse::models
