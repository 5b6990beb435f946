// SPDX-License-Identifier: Apache-2.0
// What a network makes of weights alone, whatever the samples are.
#pragma once

#include <functional>
#include <vector>

#include "core/network.hpp"

namespace rehearse {

/// Whether a layer's output is one for all samples: it is computed of weights and fixed numbers alone, and not of what
/// a copy repeats for each sample. `once` says the same of an earlier layer.
bool made_once(const Layer& layer, const std::function<bool(int)>& once);

/// The same of all layers.
std::vector<bool> made_once(const Network& network);

/// Multiply-adds of the forward pass of such layers, which a framework makes once for all samples of a step.
double multiply_adds_once(const Network& network);

}  // namespace rehearse
