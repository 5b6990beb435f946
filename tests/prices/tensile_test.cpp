// SPDX-License-Identifier: Apache-2.0
#include "prices/tensile_bound.hpp"

#include <gtest/gtest.h>

namespace rehearse::prices {
namespace {

Board amd(double units) {
    Board board{FlopRate{46.1e12}, Bandwidth{1.2288e12}, units, Bytes{4}};
    board.library = Library::rocm;
    return board;
}
const Board mi100 = amd(120);

// By hand: 12 x 20 tiles of 128 x 128 fill 120 units twice, which is a wave of two a unit; each multiply-add takes
// 0.9 + 36 (1/128 + 1/128) = 1.4625 of its time at the peak.
TEST(TensileBound, DealsTilesOutToComputeUnits) {
    const ProductTime time = tensile_bound({1, 128 * 12, 128 * 20, 4096, false}, mi100);
    EXPECT_EQ(time.rows, 128);
    EXPECT_EQ(time.columns, 128);
    EXPECT_EQ(time.blocks, 240);
    const double wave = 2 * 1.4625 * (2.0 * 128 * 128 * (4096 + 17)) / (46.1e12 / 120);
    EXPECT_NEAR(time.time.value, wave + 1.2e-6, 1e-7);
}

TEST(TensileBound, IsThatOfProductsWhereTheBoardsLibraryIs) {
    const ProductShape shape{1, 2048, 2048, 1024, false};
    EXPECT_EQ(product_bound(shape, mi100).time, tensile_bound(shape, mi100).time);
    Board other = mi100;
    other.library = Library::cuda;
    EXPECT_NE(product_bound(shape, other).time, tensile_bound(shape, mi100).time);
}

// rocBLAS took Cijk_Ailk_Bljk_SB_MT16x16x16 for 128 products of 64 x 512 x 512 on an MI100, and larger tiles for one
// product of as many rows: it looks up the size of one (NeuSight).
TEST(TensileBound, ChoosesATileAsIfABatchWereTwoProducts) {
    const ProductTime two = tensile_bound({2, 512, 64, 512, true}, mi100);
    const ProductTime many = tensile_bound({128, 512, 64, 512, true}, mi100);
    EXPECT_EQ(two.rows, many.rows);
    EXPECT_EQ(two.columns, many.columns);
    EXPECT_LT(many.rows * many.columns, 64 * 64);
    EXPECT_EQ(tensile_bound({1, 512, 64 * 128, 512, false}, mi100).rows, 128);
}

// Measured on an MI100, of 8192 rows and 2048 columns: 31 TFLOP/s at k = 4096 and 10.6 at k = 65536, where rows lie
// 256 KB apart. Of one element less they do not fall on the same channels, and at k = 30522 nothing is lost yet.
TEST(TensileBound, LosesWhatTilesShareWhereRowsLieFarApart) {
    const auto rate = [](double k) {
        const ProductShape shape{1, 2048, 8192, k, false};
        return 2 * shape.products() / tensile_bound(shape, mi100).time.value;
    };
    EXPECT_NEAR(rate(4096) / 31e12, 1, 0.1);
    EXPECT_NEAR(rate(65536) / 10.6e12, 1, 0.15);
    EXPECT_GT(rate(30522), 0.95 * rate(4096));
    EXPECT_LT(rate(32768), rate(32767));
}

// Of a gradient's operands, whose rows lie elsewhere.
TEST(TensileBound, LosesNothingWhereRowsAreNear) {
    ProductShape far{1, 2048, 8192, 65536, false}, near = far;
    near.near = true;
    EXPECT_NEAR(2 * near.products() / tensile_bound(near, mi100).time.value / 31e12, 1, 0.1);
    EXPECT_GT(tensile_bound(far, mi100).time, 2 * tensile_bound(near, mi100).time);
    far.k = near.k = 1000;
    EXPECT_NEAR(tensile_bound(far, mi100).time / tensile_bound(near, mi100).time, 1, 1e-9);
}

TEST(TensileBound, IsNeverBelowArithmeticAndMemory) {
    for (const double m : {1.0, 33.0, 500.0, 4096.0})
        for (const double k : {1.0, 77.0, 1024.0}) {
            const ProductShape shape{3, m, 129, k, true};
            const Seconds time = tensile_bound(shape, mi100).time;
            EXPECT_GT(time, Flops{2 * shape.products()} / mi100.peak);
            EXPECT_GT(time, shape.values() * mi100.element / mi100.bandwidth);
        }
}

}  // namespace
}  // namespace rehearse::prices
