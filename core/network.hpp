// SPDX-License-Identifier: Apache-2.0
// A network is a topologically ordered list of named layers; layer 0 is its Input.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.hpp"

namespace rehearse {

/// What a file says of an imported layer beside its operator: what running takes and predicting does not.
struct Given {
    std::vector<float> weights{};                     // all its tensors as training starts; empty: drawn at random
    std::vector<float> state{};                       // of a BatchNorm: running mean, then variance; empty: 0 and 1
    std::vector<std::vector<float>> fixed{};          // of an Elementwise: what its constants hold
    std::vector<std::vector<std::int32_t>> places{};  // see Elementwise, Rearrangement and Gather; empty: as they lie
    std::string data_set{};                           // of an Input that reads what another one is fed: that one's name
    std::string not_run{};                            // why the operator cannot be run as the file means it, or empty
};

struct Layer {
    std::string name;  // unique in its network
    Op op;
    std::vector<int> inputs;               // indices of earlier layers, in the operator's order
    Shape output;                          // of one sample
    int weights_of = -1;                   // of a tied MatMul or Shared: the earlier layer whose weights it shares
    int block = -1;                        // of those that a network is made of (schedule/blocks.hpp); -1: of none
    std::shared_ptr<const Given> given{};  // null: nothing is
};

struct Network {
    std::string name;
    std::vector<Layer> layers;
    std::int64_t state = 0;            // elements that are stored but not trained: running means and variances
    std::vector<std::string> notes{};  // what a reader of its figures must know: how it was imported
};

/// InputError unless the order is topological, names are unique, and each output is what its op makes of its inputs.
void check(const Network& network);

std::int64_t parameters(const Network& network);
Flops flops(const Network& network, Pass pass, std::int64_t batch = 1);
/// Bytes of all layers' outputs for one sample: what the backward pass may have to keep.
Bytes activation_bytes(const Network& network, DataType type);
/// Of the bytes that a training step's passes move, the share of operators that are unknown: their time is a guess.
double guessed_share(const Network& network);
/// For each layer, the layers that read its output.
std::vector<std::vector<int>> consumers(const Network& network);
/// For who makes a network: the block of a layer that will have this name, that of the layers in the same module
/// ("layer3" of "layer3.fc1", "model.layers.3" of "model.layers.3.mlp.up_proj"), or a new one. Nothing else reads what
/// layers are called.
int block_called(const Network& network, std::string_view name);
std::optional<int> find_layer(const Network& network, std::string_view name);
/// Whether the gradient with respect to this layer's inputs is needed: some layer before it has weights, or is received
/// from a rank that has.
std::vector<bool> needs_input_gradient(const Network& network);

}  // namespace rehearse
