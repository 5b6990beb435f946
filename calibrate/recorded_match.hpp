// SPDX-License-Identifier: Apache-2.0
// Which layer of a network each recorded call belongs to: by order, shape and kind.
//
//   network   conv1   bn1   relu1   pool   fc   loss
//   calls     conv2d  batch_norm  relu_  max_pool2d  flatten  linear  cross_entropy_loss
//             └ matched by order and shape ┘  └ found between those ┘
//   nodes     ... AddmmBackward0: by autograd's sequence number, the layer of the call that made it
//
// Where gradients are accumulated over several micro-batches, a step goes through the network as many times.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/recorded_profile.hpp"
#include "core/network.hpp"

namespace rehearse::calibrate {

inline constexpr int no_layer = -1;

struct Match {
    std::vector<int> layer;          // of each call of the step; no_layer: none
    std::vector<int> pass;           // which time through the network it belongs to, from 0
    int passes = 1;                  // ... of how many
    std::vector<int> without_calls;  // layers that do something, and that no call was found for
    std::size_t anchors = 0;         // calls that were matched by order and kind
    bool by_shape = false;           // shapes were recorded and agree
};

/// InputError where not one call agrees with a layer: with another batch, which one it was recorded at.
Match match(const StepCalls& step, const Network& network, std::int64_t batch);

/// Whether a layer does anything when it is trained.
bool does_work(const Op& op);

}  // namespace rehearse::calibrate
