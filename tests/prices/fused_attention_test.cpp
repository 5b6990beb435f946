// SPDX-License-Identifier: Apache-2.0
#include "prices/fused_attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "prices/prices.hpp"

namespace rehearse {
namespace {

using namespace literals;

// 64 processors of 2 GHz, `operations` a clock each, half of them at best; half of 1 TB/s. An exponential a score is
// one of 16 a clock.
DeviceClass fusing(double operations, FusedKernel kernel = FusedKernel::library) {
    TileModel model;
    model.processors = {64, "sheet"};
    model.large_tile = model.small_tile = model.memory = {0.5, "assumed"};
    model.depth = {132, "assumed"};
    model.unaligned = {2, "assumed"};
    model.elementwise_passes = {1, "counted"};
    model.score_passes = {0, "fused"};
    model.loss_passes = {8, "counted"};
    model.issue = {1_us, "measured"};
    model.dense_kernels = model.attention_kernels = model.loss_kernels = {1, "counted"};
    model.attention_kernel = kernel;
    model.error = 0.1;
    DeviceClass d;
    d.peak[DataType::f16] = {FlopRate{64 * 2e9 * operations}, "sheet"};
    d.memory_bandwidth = {1000_GBps, "sheet"};
    d.tiles = std::make_shared<const TileModel>(model);
    return d;
}

double fused_seconds(const Attention& op, const DeviceClass& device, Pass pass = Pass::forward) {
    return price({op, pass, 1, DataType::f16}, device).time.value;
}

constexpr double exponential = 1 / (16 * 2e9);

// 128 blocks of 64 queries, two a processor; each has 64 x 8,192 scores of 2 x (64 + 64) operations.
TEST(FusedAttention, IsItsProductsAndAnExponentialAScore) {
    const Attention op{.heads = 1, .queries = 8192, .keys = 8192, .head_size = 64};
    const double scores = 2 * 64 * 8192.0, rate = 0.5 * 2e9 * 1024;
    EXPECT_NEAR(fused_seconds(op, fusing(1024)), scores * (256 / rate + exponential), 1e-9);
    EXPECT_NEAR(fused_seconds(op, fusing(1024), Pass::backward_data), scores * (640 / rate / 0.75 + exponential), 1e-9);
    EXPECT_DOUBLE_EQ(price({op, Pass::forward, 1, DataType::f16}, fusing(1024)).error, std::hypot(0.1, 0.25));
}

// Products of 8,192 operations a clock run beside exponentials: of heads of 16 values the longer are these.
TEST(FusedAttention, HasExponentialsBesideProductsWhereMatrixUnitsRunByThemselves) {
    const double scores = 2 * 64 * 8192.0, rate = 0.5 * 2e9 * 8192;
    const Attention wide{.heads = 1, .queries = 8192, .keys = 8192, .head_size = 128};
    EXPECT_NEAR(fused_seconds(wide, fusing(8192)), scores * 512 / rate, 1e-9);
    const Attention narrow{.heads = 1, .queries = 8192, .keys = 8192, .head_size = 16};
    EXPECT_NEAR(fused_seconds(narrow, fusing(8192)), scores * exponential, 1e-9);
}

// Scores never cross memory: twice its bandwidth changes nothing. What must is queries, keys, values and the result.
TEST(FusedAttention, LeavesItsScoresOnTheChip) {
    const Attention op{.heads = 1, .queries = 8192, .keys = 8192, .head_size = 64};
    DeviceClass faster = fusing(1024);
    faster.memory_bandwidth.value = 2000_GBps;
    EXPECT_EQ(fused_seconds(op, faster), fused_seconds(op, fusing(1024)));
    const Attention shallow{.heads = 4096, .queries = 64, .keys = 64, .head_size = 64};
    EXPECT_NEAR(fused_seconds(shallow, fusing(4096)), 4096 * 64 * 64 * 4 * 2 / 500e9, 1e-9);
}

// A row of 4,096 shows (1 + 1/4,096) / 2 of its keys; of 4,096 queries behind 4,096 keys more, three quarters. A token
// more is a block more of 65 each way at most, and no slower kernel.
TEST(FusedAttention, SkipsWhatACausalMaskHidesAndTakesAnyNumberOfTokens) {
    const Attention whole{.heads = 64, .queries = 4096, .keys = 4096, .head_size = 64};
    Attention causal = whole;
    causal.causal = true;
    const double all = fused_seconds(whole, fusing(1024));
    EXPECT_NEAR(fused_seconds(causal, fusing(1024)), all * (1 + 1 / 4096.0) / 2, 1e-9);
    EXPECT_NEAR(shown_share({.heads = 1, .queries = 4096, .keys = 8192, .causal = true}), 0.75, 1e-3);
    Attention more = causal;
    more.queries = more.keys = 4097;
    EXPECT_NEAR(fused_seconds(more, fusing(1024)) / fused_seconds(causal, fusing(1024)), 65 * 65 / 4096.0, 1e-3);
}

// FlashAttention-2 has Ampere's instructions, of which later chips make 0.62 of their products; Triton's kernel takes
// 1.4 times as long on all, backward twice.
TEST(FusedAttention, IsSlowerByKernelsOfAnOlderChip) {
    const Attention op{.heads = 1, .queries = 8192, .keys = 8192, .head_size = 64};
    const double scores = 2 * 64 * 8192.0, rate = 0.5 * 2e9 * 4096;
    EXPECT_EQ(fused_seconds(op, fusing(2048, FusedKernel::flash)), fused_seconds(op, fusing(2048)));
    const double flash = fused_seconds(op, fusing(4096, FusedKernel::flash));
    EXPECT_NEAR(flash, scores * (256 / rate / 0.62 + exponential), 1e-9);
    EXPECT_NEAR(fused_seconds(op, fusing(4096, FusedKernel::triton)), 1.4 * flash, 1e-9);
    EXPECT_NEAR(fused_seconds(op, fusing(4096, FusedKernel::triton), Pass::backward_data),
                2 * fused_seconds(op, fusing(4096, FusedKernel::flash), Pass::backward_data), 1e-9);
}

}  // namespace
}  // namespace rehearse
