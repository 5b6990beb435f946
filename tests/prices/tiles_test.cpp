// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "prices/kernel_point.hpp"
#include "prices/tile_model.hpp"

namespace rehearse {
namespace {

using namespace literals;

// Without depth, so that a size of one more changes nothing but how rows begin; two as slow where they begin unaligned.
DeviceClass in_pieces() {
    TileModel model;
    model.processors = {4, "sheet"};
    model.large_tile = model.memory = model.small_tile = {1, "assumed"};
    model.depth = {0, "assumed"};
    model.unaligned = {2, "assumed"};
    DeviceClass d;
    for (const DataType type : {DataType::f16, DataType::tf32, DataType::fp8}) d.peak[type] = {100_TFLOPS, "sheet"};
    d.memory_bandwidth = {1000_GBps, "sheet"};
    d.tiles = std::make_shared<const TileModel>(model);
    return d;
}

// How many times as long per operation the pass takes as with sizes that are whole tiles, rounded.
int slowdown(const MatMul& op, Pass pass, DataType type, std::int64_t batch = 1) {
    const DeviceClass device = in_pieces();
    const auto time = [&](const MatMul& product) {
        return tiles_time(product_sizes(product, pass, batch), 1, *device.tiles, device, type);
    };
    const auto down = [](std::int64_t size) { return size / 1024 * 1024; };
    return static_cast<int>(time(op) / time({down(op.m), down(op.n), down(op.k)}) + 0.5);
}

// Rows of tokens are counted: their number is the distance of no two rows, in none of the three products.
TEST(AlignedTiles, DoNotAskHowManyTokensThereAre) {
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        for (const DataType type : {DataType::f16, DataType::tf32}) {
            EXPECT_EQ(slowdown({16385, 4096, 4096}, pass, type), 1);
            EXPECT_EQ(slowdown({16384, 4097, 4096}, pass, type), 2);
            EXPECT_EQ(slowdown({16384, 4096, 4097}, pass, type), 2);
        }
    }
}

// Products in 8 bits want the values side by side that are added up: of a gradient of weights those are tokens.
TEST(AlignedTiles, InEightBitsAskItOfGradientsOfWeightsAlone) {
    EXPECT_EQ(slowdown({16385, 4096, 4096}, Pass::forward, DataType::fp8), 1);
    EXPECT_EQ(slowdown({16385, 4096, 4096}, Pass::backward_data, DataType::fp8), 1);
    EXPECT_EQ(slowdown({16385, 4096, 4096}, Pass::backward_weights, DataType::fp8), 2);
}

// Forward {n, rows} = {n, k} x {k, rows} of a layer of 24 x 40 and 7 rows: none is 7 apart.
TEST(RowDistances, AreThoseOfALayersSizesAlone) {
    const MatMul layer{7, 24, 40};
    EXPECT_EQ(row_distances(product_sizes(layer, Pass::forward, 1)), (std::array{24.0, 40.0, 24.0}));
    EXPECT_EQ(row_distances(product_sizes(layer, Pass::backward_data, 1)), (std::array{24.0, 24.0, 40.0}));
    EXPECT_EQ(row_distances(product_sizes(layer, Pass::backward_weights, 1)), (std::array{24.0, 40.0, 24.0}));
}

}  // namespace
}  // namespace rehearse
