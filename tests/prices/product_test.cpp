// SPDX-License-Identifier: Apache-2.0
#include "prices/product_bound.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prices/library_point.hpp"

namespace rehearse::prices {
namespace {

const Board v100{FlopRate{14.13e12}, Bandwidth{900e9}, 80, Bytes{4}, false};

Problem dense(std::int64_t rows, std::int64_t n, std::int64_t k) {
    return {MatMul{.m = 1, .n = n, .k = k}, Pass::forward, rows, DataType::f32};
}

// By hand: 160 blocks of 128 x 128 at two a processor are one wave of 80 processors, each 2 x 128 x 128 x (4096 + 15)
// multiply-adds at 0.92 of its 80th of the peak.
TEST(ProductBound, DealsTilesOutInWaves) {
    const ProductTime time = product_bound({1, 128 * 10, 128 * 16, 4096, false}, v100);
    EXPECT_EQ(time.rows, 128);
    EXPECT_EQ(time.columns, 128);
    EXPECT_EQ(time.blocks, 160);
    EXPECT_EQ(time.parts, 1);
    EXPECT_DOUBLE_EQ(time.waste, 1);
    const double wave = 2 * (2.0 * 128 * 128 * (4096 + 15)) / (14.13e12 * 0.92 / 80);
    EXPECT_NEAR(time.time.value, wave + 1.7e-6, 1e-9);
}

// One column more than the tiles hold is a second wave.
TEST(ProductBound, PaysForALastWave) {
    const ProductTime full = product_bound({1, 128 * 10, 128 * 16, 4096, false}, v100);
    const ProductTime over = product_bound({1, 128 * 10, 128 * 16 + 1, 4096, false}, v100);
    EXPECT_GT(over.time, full.time * 1.05);
    EXPECT_GT(over.waste, 1);
}

TEST(ProductBound, CutsALongDepthOfFewTilesAndNeverABatch) {
    EXPECT_GT(product_bound({1, 128, 128, 65536, false}, v100).parts, 1);
    EXPECT_EQ(product_bound({1, 128, 128, 65536, true}, v100).parts, 1);
}

TEST(ProductBound, IsNeverBelowArithmeticAndMemory) {
    for (const double m : {1.0, 33.0, 500.0, 4096.0}) {
        for (const double k : {1.0, 77.0, 1024.0}) {
            const ProductShape shape{3, m, 129, k, true};
            const Seconds time = product_bound(shape, v100).time;
            EXPECT_GT(time, Flops{2 * shape.products()} / v100.peak);
            EXPECT_GT(time, shape.values() * v100.element / v100.bandwidth);
        }
    }
}

// 70 W for 8.1 TFLOP/s, of which 15 W each are needed under load: (8.64 / 15)^1.4 = 0.462. What is over before the
// limit acts runs at the boost clock.
TEST(LoadedClock, FallsWhereThePowerLimitIsLowAndTheKernelLong) {
    EXPECT_DOUBLE_EQ(loaded_clock(250, FlopRate{14.13e12}), 1);
    EXPECT_NEAR(loaded_clock(70, FlopRate{8.1e12}), 0.462, 0.001);
    EXPECT_DOUBLE_EQ(loaded_clock(72, FlopRate{30e12}, energy_of(5)), std::pow(2.4 / 6, 1.4));
    Board limited = v100;
    limited.loaded = 0.5;
    const ProductShape brief{1, 256, 256, 256, false}, lasting{1, 16384, 16384, 4096, false};
    EXPECT_EQ(product_bound(brief, limited).time, product_bound(brief, v100).time);
    EXPECT_NEAR(product_bound(lasting, limited).time / product_bound(lasting, v100).time, 2, 1e-3);
}

TEST(LibraryPoint, HasProductsAndRowsOfEachKind) {
    const auto features = [](const Problem& problem) { return library_point(problem, v100)->point.features.size(); };
    EXPECT_EQ(features(dense(64, 100, 100)), library_features("matmul"));
    EXPECT_EQ(features({GroupedMatMul{.experts = 4, .rows = 9, .n = 8, .k = 7}, Pass::forward, 1, DataType::f32}),
              library_features("groupedmatmul"));
    EXPECT_EQ(features({Softmax{1000}, Pass::forward, 64, DataType::f32}), library_features("softmax"));
    EXPECT_EQ(features({LayerNorm{8, 1000}, Pass::forward, 64, DataType::f32}), library_features("layernorm"));
    Problem backward = dense(64, 100, 100), half = backward;
    backward.pass = Pass::backward_data;
    half.type = DataType::f16;
    EXPECT_FALSE(library_point(dense(2, 100, 100), v100)) << "two rows";
    EXPECT_FALSE(library_point(backward, v100));
    EXPECT_FALSE(library_point(half, v100));
}

// 8 x 64 rows of 1000 values, each read and written once.
TEST(LibraryPoint, BoundsRowsByTheirBytes) {
    const auto point = library_point({LayerNorm{8, 1000}, Pass::forward, 64, DataType::f32}, v100);
    EXPECT_DOUBLE_EQ(point->bound.value, 2.0 * 4 * 8 * 64 * 1000 / 900e9);
}

}  // namespace
}  // namespace rehearse::prices
