// SPDX-License-Identifier: Apache-2.0
#include "prices/product_bound.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prices/library_point.hpp"
#include "prices/strided_tile.hpp"

namespace rehearse::prices {
namespace {

const Board v100{FlopRate{14.13e12}, Bandwidth{900e9}, 80, Bytes{4}, false};

Problem dense(std::int64_t rows, std::int64_t n, std::int64_t k) {
    return {MatMul{.m = 1, .n = n, .k = k}, Pass::forward, rows, DataType::f32};
}

// By hand: 160 blocks of 128 x 128 at two a processor are one wave of 80 processors, each 2 x 128 x 128 x (4096 + 14.6)
// multiply-adds at 0.984 of its 80th of the peak.
TEST(ProductBound, DealsTilesOutInWaves) {
    const ProductTime time = product_bound({1, 128 * 10, 128 * 16, 4096, false}, v100);
    EXPECT_EQ(time.rows, 128);
    EXPECT_EQ(time.columns, 128);
    EXPECT_EQ(time.blocks, 160);
    EXPECT_EQ(time.parts, 1);
    EXPECT_DOUBLE_EQ(time.waste, 1);
    const double wave = 2 * (2.0 * 128 * 128 * (4096 + 14.6)) / (14.13e12 * 0.984 / 80);
    EXPECT_NEAR(time.time.value, wave + 1.7e-6, 1e-9);
}

// One column more than the tiles hold is a second wave.
TEST(ProductBound, PaysForALastWave) {
    const ProductTime full = product_bound({1, 128 * 10, 128 * 16, 4096, false}, v100);
    const ProductTime over = product_bound({1, 128 * 10, 128 * 16 + 1, 4096, false}, v100);
    EXPECT_GT(over.time, full.time * 1.05);
    EXPECT_GT(over.waste, 1);
}

// By hand: all that Pascal's cuBLAS has for batches is tiles of 128 x 64, four a processor: 56 x 4 products of one tile
// are one wave, each of 2 x 128 x 64 x (2000 + 12.3) multiply-adds at 0.952 of a processor's peak; memory, 0.69 of its
// bandwidth, holds them up by its fourth power. Of 64 x 128 the same tile computes half for nothing.
TEST(ProductBound, OfBatchesIsInTheTilesOfTheBoardsGeneration) {
    Board p100{FlopRate{9.34e12}, Bandwidth{732e9}, 56, Bytes{4}, true};
    p100.batch_tiles = BatchTiles::pascal;
    const ProductShape batch{224, 128, 64, 2000, true};
    const ProductTime time = product_bound(batch, p100);
    EXPECT_EQ(time.rows, 128);
    EXPECT_EQ(time.columns, 64);
    const double computed = 4 * (2.0 * 128 * 64 * (2000 + 12.3)) / (9.34e12 * 0.952 / 56);
    const double read = batch.values() * 4 / (732e9 * 0.69);
    EXPECT_NEAR(time.time.value, std::pow(std::pow(computed, 4) + std::pow(read, 4), 0.25) + 1.7e-6, 1e-9);
    EXPECT_GT(product_bound({224, 64, 128, 2000, true}, p100).time, time.time * 1.7);
    EXPECT_DOUBLE_EQ(product_bound({224, 64, 128, 2000, true}, p100).waste, 2);
    p100.batch_tiles = BatchTiles::any;
    EXPECT_LT(product_bound({224, 64, 128, 2000, true}, p100).waste, 2) << "64 x 64 fit";
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

// 70 W for 8.1 TFLOP/s, of which 17.6 W each are needed under load: (8.64 / 17.6)^1.055 = 0.472. What is over before
// the limit acts runs at the boost clock.
TEST(LoadedClock, FallsWhereThePowerLimitIsLowAndTheKernelLong) {
    EXPECT_DOUBLE_EQ(loaded_clock(250, FlopRate{14.13e12}), 1);
    EXPECT_NEAR(loaded_clock(70, FlopRate{8.1e12}), 0.472, 0.001);
    EXPECT_DOUBLE_EQ(loaded_clock(72, FlopRate{30e12}, energy_of(5)), std::pow(2.4 / (17.6 * 0.335), 1.055));
    Board limited = v100;
    limited.loaded = 0.5;
    const ProductShape brief{1, 128, 128, 128, false}, lasting{1, 16384, 16384, 4096, false};
    EXPECT_EQ(product_bound(brief, limited).time, product_bound(brief, v100).time);
    EXPECT_NEAR(product_bound(lasting, limited).time / product_bound(lasting, v100).time, 2, 1e-3);
}

// Rows that lie 64 KB apart, of sizes that are no multiples of anything: a chip whose kernels read a sector of each at
// a time takes several times as long as one that reads whole lines; a batch, and aligned sizes where only odd ones are
// read so, do not.
TEST(ProductBound, WaitsForStridedRows) {
    Board odd = v100, all = v100;
    odd.reads = Reads::strided_odd;
    all.reads = Reads::strided;
    const ProductShape uneven{1, 2001, 3001, 16385, false}, even{1, 2048, 3072, 16384, false};
    EXPECT_GT(product_bound(uneven, odd).time, 2 * product_bound(uneven, v100).time);
    EXPECT_EQ(product_bound(uneven, odd).time, product_bound(uneven, all).time);
    EXPECT_EQ(product_bound(even, odd).time, product_bound(even, v100).time);
    EXPECT_GT(product_bound(even, all).time, 2 * product_bound(even, v100).time);
    ProductShape batch = uneven;
    batch.batched = true;
    EXPECT_EQ(product_bound(batch, all).time, product_bound(batch, v100).time);
    // Of rows that lie near each other tiles share what they read.
    const ProductShape shallow{1, 2001, 3001, 513, false};
    EXPECT_LT(product_bound(shallow, all).time * (16385.0 / 513), product_bound(uneven, all).time / 1.5);
}

// Kernels that NeuSight saw on a P4, {columns, rows} of the result. Of 20 processors the busiest gets 18 tiles of 64x64
// and 17 of 32x128; 312 and 315 of the other; of as many the last wave has two, four, five and seven; eight, which fill
// it, are taken as 32x128.
TEST(StridedTile, IsTheOneThatKeepsTheBusiestProcessorLess) {
    Board p4{FlopRate{5.44e12}, Bandwidth{192e9}, 20, Bytes{4}, true};
    p4.reads = Reads::strided_odd;
    const auto low = [&](double m, double n, double k) { return strided_choice({1, m, n, k, false}, p4) > 0; };
    EXPECT_TRUE(low(1178, 1123, 6589));
    EXPECT_FALSE(low(4013, 6309, 536));
    EXPECT_TRUE(low(1764, 4445, 7940));
    EXPECT_TRUE(low(5850, 345, 10735));
    EXPECT_FALSE(low(11640, 4433, 97));
    EXPECT_FALSE(low(36653, 623, 546));
    EXPECT_TRUE(low(11491, 973, 3042));
    EXPECT_FALSE(low(51, 217, 4500)) << "a tile for one processor in five";
    EXPECT_EQ(product_bound({1, 1178, 1123, 6589, false}, p4).columns, 128);
    EXPECT_EQ(product_bound({1, 11640, 4433, 97, false}, p4).columns, 64);
    EXPECT_EQ(strided_choice({1, 1178, 1123, 6589, true}, p4), 0) << "a batch";
    EXPECT_EQ(strided_choice({1, 1178, 1123, 6589, false}, v100), 0);
}

// Twice the lanes at one shared memory: 128 lanes at 1.4 GHz are 358 GFLOP/s a processor.
TEST(ProductBound, SharesTheMemoryOfAProcessorAmongItsLanes) {
    const Board wide{v100.peak, v100.bandwidth, 39, Bytes{4}, false}, narrow{v100.peak, v100.bandwidth, 41, Bytes{4}};
    const ProductShape large{1, 8192, 8192, 4096, false};
    EXPECT_NEAR(product_bound(large, wide).time / product_bound(large, narrow).time, 1 / 0.779, 0.05);
}

TEST(LibraryProduct, HasProductsAndRowsOfEachKind) {
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
TEST(LibraryProduct, BoundsRowsByTheirBytes) {
    const auto point = library_point({LayerNorm{8, 1000}, Pass::forward, 64, DataType::f32}, v100);
    EXPECT_DOUBLE_EQ(point->bound.value, 2.0 * 4 * 8 * 64 * 1000 / 900e9);
}

}  // namespace
}  // namespace rehearse::prices
