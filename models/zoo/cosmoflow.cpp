// SPDX-License-Identifier: Apache-2.0
// CosmoFlow estimates cosmological parameters from a box of dark matter. ReLU stands for the leaky one of both versions
// and softmax cross-entropy for their regression loss: neither costs anything beside the convolutions.
#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

int conv_relu(NetworkBuilder& b, int index, int from, std::int64_t filters, Window window) {
    const int x = b.conv(fmt::format("conv{}", index), from, filters, window, true);
    return b.relu(fmt::format("relu{}", index), x);
}

int dense_relu(NetworkBuilder& b, int index, int from, std::int64_t features) {
    return b.relu(fmt::format("fc{}.relu", index), b.dense(fmt::format("fc{}", index), from, features));
}

}  // namespace

// Mathuriya et al. 2018: 128^3 voxels, seven convolutions without padding, three average pools, three dense layers.
// The stride of conv4 is that of github.com/NERSC/CosmoFlow's CosmoNet_128128.py: the only one of its versions whose
// 2048 features (256 channels of 2^3) follow from 128^3.
Network cosmoflow() {
    NetworkBuilder b("cosmoflow", {1, 128, 128, 128});
    int x = conv_relu(b, 1, NetworkBuilder::input, 16, cube(3));
    x = conv_relu(b, 2, b.average_pool("pool1", x, cube(2, 2)), 32, cube(4));
    x = conv_relu(b, 3, b.average_pool("pool2", x, cube(2, 2)), 64, cube(4));
    x = conv_relu(b, 4, b.average_pool("pool3", x, cube(2, 2)), 128, cube(3, 2));
    x = conv_relu(b, 5, x, 256, cube(3));
    x = conv_relu(b, 6, x, 256, cube(2));
    x = conv_relu(b, 7, x, 256, cube(2));
    x = dense_relu(b, 1, b.dropout("drop1", b.flatten("flatten", x), 0.5), 2048);
    x = dense_relu(b, 2, b.dropout("drop2", x, 0.5), 256);
    b.loss(b.dense("fc3", b.dropout("drop3", x, 0.5), 3));
    return b.build();
}

// MLPerf HPC (github.com/mlcommons/hpc, cosmoflow): four red shifts, five padded convolutions, each with a max pool.
Network cosmoflow_mlperf() {
    NetworkBuilder b("cosmoflow-mlperf", {4, 128, 128, 128});
    int x = NetworkBuilder::input;
    for (int i = 1; i <= 5; ++i) {
        x = conv_relu(b, i, x, std::int64_t{16} << i, cube(3, 1, 1));
        x = b.max_pool(fmt::format("pool{}", i), x, cube(2, 2));
    }
    x = b.dropout("drop1", dense_relu(b, 1, b.flatten("flatten", x), 128), 0.5);
    x = b.dropout("drop2", dense_relu(b, 2, x, 64), 0.5);
    b.loss(b.dense("fc3", x, 4));
    return b.build();
}

// The small one of NERSC's cosmoflow-benchmark (commit 43e746e, from its row in calibrate/published): four red shifts,
// five convolutions of 16 filters of 2^3 without padding, each with a max pool; 72.7 thousand parameters.
Network cosmoflow_small() {
    NetworkBuilder b("cosmoflow-small", {4, 128, 128, 128});
    int x = NetworkBuilder::input;
    for (int i = 1; i <= 5; ++i) {
        x = b.max_pool(fmt::format("pool{}", i), conv_relu(b, i, x, 16, cube(2)), cube(2, 2));
    }
    x = b.dropout("drop1", dense_relu(b, 1, b.flatten("flatten", x), 128), 0.5);
    x = b.dropout("drop2", dense_relu(b, 2, x, 64), 0.5);
    b.loss(b.dense("fc3", x, 4));
    return b.build();
}

namespace {

// That of Kahira et al. 2021 (github.com/ankahira/paraDL, cosmoflow/models/spatial_cosmoflow.py): four red shifts,
// seven convolutions, average pools. Its first two are not padded, but lose voxels at the edges of the box only; here
// they are, so that ranks can share every layer.
Network wide_cosmoflow(const char* name, std::int64_t side) {
    NetworkBuilder b(name, {4, side, side, side});
    const auto conv = [&](int index, int from, std::int64_t filters, Window window) {
        return b.relu(fmt::format("relu{}", index), b.conv(fmt::format("conv{}", index), from, filters, window));
    };
    int x = conv(1, NetworkBuilder::input, 16, cube(3, 1, 1));
    x = conv(2, b.average_pool("pool1", x, cube(2, 2)), 32, cube(3, 1, 1));
    x = conv(3, b.average_pool("pool2", x, cube(2, 2)), 64, cube(3, 1, 1));
    x = conv(4, b.average_pool("pool3", x, cube(2, 2)), 128, cube(3, 2, 1));
    x = conv(5, b.average_pool("pool4", x, cube(2, 2)), 256, cube(2, 1, 1));
    x = conv(6, b.average_pool("pool5", x, cube(2, 2)), 256, cube(2, 1, 1));
    x = conv(7, b.average_pool("pool6", x, cube(2, 2)), 128, cube(2, 1, 1));
    x = dense_relu(b, 2, dense_relu(b, 1, b.flatten("flatten", x), 2048), 256);
    b.loss(b.dense("fc3", x, 4));
    return b.build();
}

}  // namespace

Network cosmoflow_256() { return wide_cosmoflow("cosmoflow-256", 256); }
Network cosmoflow_512() { return wide_cosmoflow("cosmoflow-512", 512); }

}  // namespace rehearse::models
