// SPDX-License-Identifier: Apache-2.0
// Three of NERSC's pytorch-benchmarks (github sparticlesteve/pytorch-benchmarks). The LSTM: four layers of 512 cells
// over 64 time steps of 512 inputs. The encoder: 4 layers of width 512, also between the two dense layers of a block, 8
// heads, 512 tokens of 1,024 (configs/transformer.yaml); its output layer has weights of its own there, which cost as
// much as ours. The 3-D network: four convolutions of 3^3 with a max pool each, two dense layers (models/cnn3d.py), on
// 64^3 voxels.
#include <fmt/format.h>

#include <string>

#include "models/builder.hpp"
#include "models/zoo/transformer.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {

Network lstm_4x512() {
    constexpr std::int64_t steps = 64, width = 512;
    NetworkBuilder b("lstm-4x512", {steps, width});
    int x = NetworkBuilder::input;
    for (int i = 1; i <= 4; ++i) {
        const std::string name = fmt::format("lstm{}", i);
        x = b.layer(name, Recurrent{.steps = steps, .inputs = width, .hidden = width}, {x});
        x = b.layer(name + ".rows", Flatten{b.shape(x), {steps, width}}, {x});
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
                        .vocabulary = 1024,
                        .positions = 512,
                        .inner = 512},
                       512);
}

Network cnn3d_64() {
    NetworkBuilder b("cnn3d-64", {1, 64, 64, 64});
    int x = NetworkBuilder::input;
    for (int i = 1; i <= 4; ++i) {
        x = b.conv(fmt::format("conv{}", i), x, std::int64_t{8} << i, cube(3, 1, 1), true);
        x = b.max_pool(fmt::format("pool{}", i), b.relu(fmt::format("relu{}", i), x), cube(2, 2));
    }
    x = b.relu("fc1.relu", b.dense("fc1", b.flatten("flatten", x), 256));
    b.loss(b.dense("fc2", x, 4));
    return b.build();
}

}  // namespace rehearse::models
