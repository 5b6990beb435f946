// SPDX-License-Identifier: Apache-2.0
// Two of NERSC's pytorch-benchmarks. The LSTM: four layers of 512 cells over 64 time steps of 512 inputs. There is no
// recurrent operator here: each layer stands as two products over all its time steps, inputs to gates and states to
// gates, with the weights and operations of the original, not with its order in time. Good for scaling from a measured
// step, not for the price of one. The encoder: 4 layers, width 512, 512 tokens; heads of 64, four times the width
// between, and a small vocabulary are assumed (PyTorch's defaults).
#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/transformer.hpp"
#include "models/zoo_replayed.hpp"

namespace rehearse::models {

Network lstm_4x512() {
    constexpr std::int64_t steps = 64, width = 512, gates = 4 * width;
    NetworkBuilder b("lstm-4x512", {steps, width});
    int x = NetworkBuilder::input;
    for (int i = 1; i <= 4; ++i) {
        x = b.layer(fmt::format("lstm{}.inputs", i), MatMul{.m = steps, .n = gates, .k = width, .bias = true}, {x});
        x = b.layer(fmt::format("lstm{}.gates", i), Activation{Nonlinearity::sigmoid, b.shape(x)}, {x});
        x = b.layer(fmt::format("lstm{}.states", i), MatMul{.m = steps, .n = width, .k = gates, .bias = true}, {x});
    }
    b.loss(b.flatten("flatten", x));
    return b.build();
}

Network encoder_4x512() {
    return transformer({.name = "encoder-4x512",
                        .kind = TransformerKind::encoder,
                        .layers = 4,
                        .hidden = 512,
                        .heads = 8,
                        .vocabulary = 512,
                        .positions = 512},
                       512);
}

}  // namespace rehearse::models
