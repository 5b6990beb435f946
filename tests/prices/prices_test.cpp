// SPDX-License-Identifier: Apache-2.0
#include "prices/prices.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.hpp"
#include "core/rotary.hpp"
#include "prices/nearest_samples.hpp"
#include "prices/roofline.hpp"
#include "prices/tile_model.hpp"

namespace rehearse {
namespace {

using namespace literals;

DeviceClass device() {
    DeviceClass d;
    d.name = "toy";
    d.peak[DataType::f32] = {10_TFLOPS, "data sheet"};
    d.memory_bandwidth = {100_GBps, "data sheet"};
    d.launch = {5_us, "measured"};
    d.efficiencies = {{"*", {}, {}, 0.8, 0.1, "any"},
                      {"conv2d", {}, {}, 0.5, 0.2, "conv"},
                      {"conv2d", Pass::forward, {}, 0.25, 0.3, "conv forward"}};
    return d;
}

// 64 x 64 filters of 1x1 on 100 x 100: 10^4 * 64 * 128 = 81.92 MFLOP a sample; 2 * 64 * 10^4 * 4 B + 16 kB = 5.13 MB.
const Conv conv{64, 100, 100, 64, Window{}};

TEST(Roofline, TakesTheSlowerOfComputeAndMemory) {
    const Price p = price({conv, Pass::forward, 1, DataType::f32}, device());
    const double memory = (2 * 64 * 1e4 * 4 + 64 * 64 * 4) / 100e9;  // 51.4 us; compute is 8.2 us
    EXPECT_DOUBLE_EQ(p.time.value, memory / 0.25 + 5e-6);
    EXPECT_EQ(p.error, 0.3);
    EXPECT_THAT(p.source, testing::HasSubstr("memory bound"));
    const Conv big{512, 14, 14, 512, Window{3, 3, 1, 1, 1, 1, 1, 1}};
    const Price q = price({big, Pass::backward_data, 32, DataType::f32}, device());
    EXPECT_DOUBLE_EQ(q.time.value, 32 * 2.0 * 512 * 196 * 512 * 9 / 10e12 / 0.5 + 5e-6);
    EXPECT_THAT(q.source, testing::HasSubstr("compute bound"));
    EXPECT_EQ(price({Add{{10}}, Pass::forward, 1, DataType::f32}, device()).error, 0.1);
}

// 2 x 64^3 operations at 10 TFLOP/s; 64 x 64 + 64 x 64 + 64 x 64 numbers of 4 bytes at 100 GB/s.
TEST(Roofline, TimesAreThoseOfTheSheet) {
    const Problem product{MatMul{64, 64, 64, false}, Pass::forward, 1, DataType::f32};
    const RooflineTimes times = roofline_times(product, device());
    EXPECT_DOUBLE_EQ(times.compute.value().value, 2.0 * 64 * 64 * 64 / 10e12);
    EXPECT_DOUBLE_EQ(times.memory.value().value, 3.0 * 64 * 64 * 4 / 100e9);
    DeviceClass unknown = device();
    unknown.memory_bandwidth.value = Bandwidth{0};
    const RooflineTimes half = roofline_times({product.op, Pass::forward, 1, DataType::f16}, unknown);
    EXPECT_FALSE(half.compute);
    EXPECT_FALSE(half.memory);
}

TEST(Roofline, NeedsThePeakOfItsType) {
    EXPECT_THROW(price({conv, Pass::forward, 1, DataType::f16}, device()), InputError);
}

// 4 experts, each with 2 x 8 / 4 x 3 = 12 rows of two ranks' slots: four kernels of a product.
TEST(Roofline, OfExpertsIsThatOfOneProductAfterTheOther) {
    const GroupedMatMul experts{.experts = 4, .rows = 3, .n = 640, .k = 512, .sources = 2, .group = 4, .bias = false};
    const Price p = price({experts, Pass::forward, 8, DataType::f32}, device());
    const double bytes = 4.0 * (12 * 512 + 512 * 640 + 12 * 640);
    EXPECT_DOUBLE_EQ(p.time.value, 4 * (bytes / 100e9 / 0.8 + 5e-6));
    EXPECT_THAT(p.source, testing::HasSubstr("4 times matmul:m12n640k512"));
}

// Two heads of 64 tokens, 4 samples. Two products and four operations a score take 10 TFLOP/s, 1.3 times what large
// ones of the device do, which reach 0.8 and a launch of 5 us in 13.7 ms; 4 x 2 x 64 x 64 scores cross 80 GB/s 6.5
// times. Where a host fuses it, queries, keys, values and results at 100 GB/s take longer than its operations.
TEST(Unfused, AttentionIsItsProductsAndPassesOverScores) {
    const Attention op{.heads = 2, .queries = 64, .keys = 64, .head_size = 32};
    const double large = 2 * std::pow(4096.0, 3) / 10e12, beyond = (large / 0.8 + 5e-6) / large;
    const double products = (2 * 2.0 * 32 + 4) * 64 * 64 * 8 / 10e12, scores = 4 * 8 * 64 * 64 / 80e9;
    const Problem forward{op, Pass::forward, 4, DataType::f32};
    EXPECT_NEAR(price(forward, device()).time.value, 1.3 * beyond * products + 6.5 * scores + 5e-6, 1e-10);
    DeviceClass own = device();
    own.efficiencies.push_back({"attention", {}, {}, 0.5, 0.2, "measured"});
    EXPECT_THAT(price(forward, own).source, testing::HasSubstr("roofline")) << "the device's own share goes first";
    DeviceClass host = device();
    host.host = true;
    EXPECT_NEAR(price(forward, host).time.value, 4 * 4 * 64 * 64 * 4 / 100e9 + 5e-6, 1e-10);
}

// 4 samples of 16 rows of 1,000 classes: read three times and written once; backward five passes.
TEST(Unfused, LossInF32HasItsPassesOverScores) {
    const SoftmaxLoss op{.classes = 1000, .rows = 16};
    const double pass = 4 * 4 * 16 * 1000 / 80e9;
    EXPECT_NEAR(price({op, Pass::forward, 4, DataType::f32}, device()).time.value, 4 * pass + 5e-6, 1e-12);
    EXPECT_NEAR(price({op, Pass::backward_data, 4, DataType::f32}, device()).time.value, 5 * pass + 5e-6, 1e-12);
}

TEST(MeasuredPrice, BeatsTheRoofline) {
    DeviceClass d = device();
    d.measured[to_string(Problem{conv, Pass::forward, 8, DataType::f32})] = {2_ms, 0.05, 20, "measured, host, 20"};
    const Price p = price({conv, Pass::forward, 8, DataType::f32}, d);
    EXPECT_EQ(p.time, 2_ms);
    EXPECT_EQ(p.error, 0.05);
    EXPECT_EQ(p.source, "measured, host, 20");
}

TEST(MeasuredPrice, IsInterpolatedBetweenBatches) {
    DeviceClass d = device();
    d.measured[to_string(Problem{conv, Pass::forward, 8, DataType::f32})] = {2_ms, 0.05, 20, "a"};
    d.measured[to_string(Problem{conv, Pass::forward, 16, DataType::f32})] = {3_ms, 0.1, 20, "b"};
    d.measured[to_string(Problem{conv, Pass::backward_data, 12, DataType::f32})] = {9_ms, 0.1, 20, "c"};
    EXPECT_DOUBLE_EQ(price({conv, Pass::forward, 12, DataType::f32}, d).time.value, 2.5e-3);
    EXPECT_EQ(price({conv, Pass::forward, 12, DataType::f32}, d).error, 0.1);
    // Beyond: in proportion, with 10 % more error a doubling.
    const Price beyond = price({conv, Pass::forward, 32, DataType::f32}, d);
    EXPECT_DOUBLE_EQ(beyond.time.value, 6e-3);
    EXPECT_DOUBLE_EQ(beyond.error, std::hypot(0.1, 0.1));
    EXPECT_DOUBLE_EQ(price({conv, Pass::forward, 4, DataType::f32}, d).time.value, 1e-3);
}

TEST(ZScore, MovesEachPriceByItsOwnError) {
    const Price p{10_ms, 0.2, ""};
    EXPECT_EQ(at(p, nominal), 10_ms);
    EXPECT_DOUBLE_EQ(at(p, high).value, 12e-3);
    EXPECT_DOUBLE_EQ(at(p, low).value, 8e-3);
    EXPECT_DOUBLE_EQ(at(Price{10_ms, 0.9, ""}, low).value, 5e-3);
}

/// Four processors of 25 TFLOPS together 100, 1 TB/s, half of each at best; a call takes 1 us.
DeviceClass tiled() {
    TileModel model;
    model.processors = {4, "sheet"};
    model.large_tile = model.memory = {0.5, "assumed"};
    model.small_tile = {0.75, "assumed"};
    model.depth = {64, "assumed"};
    model.unaligned = {2, "assumed"};
    model.elementwise_passes = {2, "counted"};
    model.score_passes = {6, "counted"};
    model.loss_passes = {8, "counted"};
    model.issue = {1_us, "measured"};
    model.dense_kernels = {3, "counted"};
    model.attention_kernels = {10, "counted"};
    model.loss_kernels = {4, "counted"};
    model.error = 0.1;
    DeviceClass d;
    d.peak[DataType::f16] = {100_TFLOPS, "sheet"};
    d.memory_bandwidth = {1000_GBps, "sheet"};
    d.tiles = std::make_shared<const TileModel>(model);
    return d;
}

TEST(Tiles, AreDealtOutInWaves) {
    const auto time = [](std::int64_t rows, std::int64_t columns) {
        return price({MatMul{rows, columns, 4096, false}, Pass::forward, 1, DataType::f16}, tiled()).time.value;
    };
    // A wave of four tiles of 256 x 128: 2 * 256 * 128 * (4096 + 64) operations at 12.5 TFLOPS each.
    const double wave = 2 * 256 * 128 * 4160.0 / 12.5e12;
    EXPECT_NEAR(time(512, 256), wave, 1e-9);
    EXPECT_NEAR(time(1024, 512), 4 * wave, 1e-9);
    // One tile more: a wave more of smaller tiles, or of all; k cut in two would write 2 * 4 * 2 * m * n bytes.
    EXPECT_GT(time(512, 264), 1.3 * wave);
    EXPECT_NEAR(time(1024, 512 - 1), 2 * time(1024, 512), 1e-9) << "not in pieces of 16 bytes";
    // Four experts, two tiles each: two waves for all together.
    const GroupedMatMul experts{.experts = 4, .rows = 256, .n = 256, .k = 4096, .bias = false};
    EXPECT_NEAR(price({experts, Pass::forward, 1, DataType::f16}, tiled()).time.value, 2 * wave, 1e-9);
}

// TF32 at half the rate of f16 and of its own, FP8 at twice: a tile of 256 x 128 takes twice or half as long, and as
// long to begin and store. Nobody has measured them, which the source says and the error shows.
TEST(Tiles, OfTypesThatNobodyMeasuredAreModelledFromTheDataSheet) {
    DeviceClass device = tiled();
    device.peak[DataType::tf32] = {50_TFLOPS, "sheet"};
    device.peak[DataType::fp8] = {200_TFLOPS, "sheet"};
    const MatMul product{512, 256, 4096, false};
    const Price half = price({product, Pass::forward, 1, DataType::f16}, device);
    const Price tf32 = price({product, Pass::forward, 1, DataType::tf32}, device);
    const Price fp8 = price({product, Pass::backward_weights, 1, DataType::fp8}, device);
    const double tile = 2 * 256 * 128;
    EXPECT_NEAR(half.time.value, tile * (4096 + 64) / 12.5e12, 1e-12);
    EXPECT_NEAR(tf32.time.value, tile * (4096 + 32) / 6.25e12, 1e-12);
    // Of {4096, 256} = {4096, 512} x {512, 256}: 32 tiles in 8 waves.
    EXPECT_NEAR(fp8.time.value, 8 * tile * (512 + 128) / 25e12, 1e-12);
    EXPECT_EQ(half.error, 0.1);
    EXPECT_NEAR(tf32.error, std::hypot(0.1, 0.25), 1e-12);
    EXPECT_NEAR(fp8.error, tf32.error, 1e-12);
    EXPECT_THAT(tf32.source, testing::StartsWith("tf32 modelled from the data sheet"));
    // Forward turns 512 x 4096 inputs from 16 bits into 8, twice: 4 bytes each at 500 GB/s.
    const Price forward = price({product, Pass::forward, 1, DataType::fp8}, device);
    EXPECT_NEAR(forward.time.value, tile * (4096 + 128) / 25e12 + 4 * 512 * 4096 / 500e9, 1e-12);
    device.peak.erase(DataType::fp8);
    EXPECT_THROW(static_cast<void>(price({product, Pass::forward, 1, DataType::fp8}, device)), InputError);
}

// In f32 nothing is cast, so that values cross memory at most 1.46 times; where operators are many kernels each, more
// often, by as much as in 16 bits.
TEST(Tiles, MoveValuesLessOftenInF32) {
    DeviceClass device = tiled();
    device.peak[DataType::f32] = {10_TFLOPS, "sheet"};
    TileModel model = *device.tiles;
    const auto times = [&](double passes) {
        model.elementwise_passes = {passes, "counted"};
        device.tiles = std::make_shared<const TileModel>(model);
        const Price priced = price({Add{{1024, 4096}}, Pass::forward, 1, DataType::f32}, device);
        return priced.time.value / (3 * 1024 * 4096 * 4 / 500e9);
    };
    EXPECT_NEAR(times(1), 1, 1e-9);
    EXPECT_NEAR(times(1.2), 1.2, 1e-9);
    EXPECT_NEAR(times(2.32), 1.46, 1e-9);
    EXPECT_NEAR(times(4.64), 2.92, 1e-9);
}

// A module that the framework computes operator by operator moves the bytes of one kernel as often as is counted; in
// f32 RMS normalization casts nothing. Layer normalization, which is one kernel, is none of them.
TEST(Tiles, MoveModulesOperatorByOperator) {
    DeviceClass device = tiled();
    device.peak[DataType::f32] = {10_TFLOPS, "sheet"};
    const Normalization rms{{1024, 4096}, 1024, 4096, 0, 1, false, 1e-5};
    const Elementwise rotary = rehearse::rotary({1024, 4096}, {128, 128}, 32, {});
    const auto time = [&](const Op& op, Pass pass, DataType type) {
        return price({op, pass, 1, type}, device).time.value / (1024 * 4096 * size_of(type).value / 500e9);
    };
    const double fused = time(rms, Pass::forward, DataType::f16);
    TileModel model = *device.tiles;
    model.modules = {{9, "counted"}, {15, "counted"}, {5, "counted"}, {7, "counted"}};
    device.tiles = std::make_shared<const TileModel>(model);
    EXPECT_NEAR(time(rms, Pass::forward, DataType::f16), 9 * 2, 0.02);
    EXPECT_NEAR(time(rms, Pass::backward_data, DataType::f16), 15 * 3, 0.02);
    EXPECT_NEAR(time(rms, Pass::forward, DataType::f32), 3.5 * 2, 0.02);
    EXPECT_NEAR(time(rms, Pass::backward_data, DataType::f32), 7.5 * 3, 0.02);
    EXPECT_NEAR(time(rotary, Pass::forward, DataType::f16), 5 * 2, 0.02);
    EXPECT_NEAR(time(rotary, Pass::backward_data, DataType::f16), 7 * 2, 0.02);
    EXPECT_LT(fused, 3);
    Normalization centred = rms;
    centred.centred = true;
    EXPECT_LT(time(centred, Pass::forward, DataType::f16), 3);
}

// Fused attention that a program keeps after all crosses memory as in programs of 2021, six and a half times.
TEST(Tiles, OfAttentionThatIsKeptHaveItCrossMemory) {
    DeviceClass device = tiled();
    TileModel fused = *device.tiles;
    fused.score_passes = {};
    device.tiles = std::make_shared<const TileModel>(fused);
    Attention attention{16, 1024, 1024, 64, false, true};
    attention.kept = true;
    const double with = price({attention, Pass::forward, 1, DataType::f16}, device).time.value;
    fused.score_passes = {6, "counted"};
    device.tiles = std::make_shared<const TileModel>(fused);
    const double six_times = price({attention, Pass::forward, 1, DataType::f16}, device).time.value;
    EXPECT_NEAR(with - six_times, 2 * 16 * 0.5 * 1048576.0 / 500e9, 1e-12);
}

// A row of 1024 shows 512.5 scores on average: softmax reads so many in place of all forward, and of two tensors
// backward. What is not causal is read whole, and what is fused never was.
TEST(Tiles, OfCausalAttentionReadNoScoresThatTheMaskHides) {
    DeviceClass device = tiled();
    TileModel model = *device.tiles;
    const auto saved = [&](double masked, const Attention& attention, Pass pass) {
        const auto time = [&](double passes) {
            model.masked_passes = {passes, "counted"};
            device.tiles = std::make_shared<const TileModel>(model);
            return price({attention, pass, 1, DataType::f16}, device).time.value;
        };
        return time(0) - time(masked);
    };
    const Attention causal{16, 1024, 1024, 64, true, true}, whole{16, 1024, 1024, 64, false, true};
    const double hidden = 2 * 16 * 1024 * (1024 - 512.5) / 500e9;
    EXPECT_NEAR(saved(0.5, causal, Pass::forward), hidden, 1e-12);
    EXPECT_NEAR(saved(0.5, causal, Pass::backward_data), 2 * hidden, 1e-12);
    EXPECT_EQ(saved(0.5, whole, Pass::forward), 0);
    EXPECT_EQ(saved(0.5, {16, 4096, 4096, 64, true, true}, Pass::forward), 0) << "longer than its registers hold";
    model.score_passes = {};
    EXPECT_EQ(saved(0.5, causal, Pass::forward), 0);
}

TEST(Tiles, PriceTheRestByBytesAndNothingUnderTheHostsCalls) {
    const Price norm = price({LayerNorm{1024, 4096}, Pass::forward, 1, DataType::f16}, tiled());
    EXPECT_NEAR(norm.time.value, 2 * 2 * (2 * 1024 * 4096 + 2 * 4096) / 500e9, 1e-12);
    EXPECT_EQ(norm.error, 0.1);
    EXPECT_DOUBLE_EQ(price({LayerNorm{8, 8}, Pass::forward, 1, DataType::f16}, tiled()).time.value, 1e-6);
    EXPECT_DOUBLE_EQ(price({MatMul{8, 8, 8}, Pass::forward, 1, DataType::f16}, tiled()).time.value, 3e-6);
    // Scores of 16 heads, 1024 x 1024, cross memory six times: 2 * 16 * 6 * 2^20 bytes; twice as many samples, twice.
    const Attention attention{16, 1024, 1024, 64, true, true};
    const double one = price({attention, Pass::forward, 1, DataType::f16}, tiled()).time.value;
    EXPECT_GT(one, 2 * 16 * 6 * 1048576.0 / 500e9);
    EXPECT_NEAR(price({attention, Pass::forward, 2, DataType::f16}, tiled()).time.value, 2 * one, 0.01 * one);
    // What it does not know is a roofline, as ever; so is what convolutional networks do to images.
    EXPECT_THAT(price({conv, Pass::forward, 1, DataType::f16}, tiled()).source, testing::HasSubstr("roofline"));
    const Activation of_tokens{Nonlinearity::gelu, {1024, 4096}}, of_images{Nonlinearity::relu, {64, 56, 56}};
    EXPECT_THAT(price({of_tokens, Pass::forward, 1, DataType::f16}, tiled()).source, testing::HasSubstr("tiles"));
    EXPECT_THAT(price({of_images, Pass::forward, 1, DataType::f16}, tiled()).source, testing::HasSubstr("roofline"));
}

// Values of 4 bytes need no casts, so that elementwise operators move them 1.46 times and not twice, and a tile is
// begun and stored in the same time: at a tenth of the rate, that of a tenth of the steps.
TEST(Tiles, InF32PriceWhatCrossesMemoryAndNoProducts) {
    DeviceClass d = tiled();
    d.peak[DataType::f32] = {10_TFLOPS, "sheet"};
    const auto time = [&](const Op& op, DataType type) { return price({op, Pass::forward, 1, type}, d).time.value; };
    const LayerNorm norm{1024, 4096};
    EXPECT_NEAR(time(norm, DataType::f32), 1.46 * time(norm, DataType::f16), 1e-12);
    EXPECT_THAT(price({MatMul{512, 256, 4096, false}, Pass::forward, 1, DataType::f32}, d).source,
                testing::HasSubstr("roofline"));
    // 4 heads x 2 products of {256, 128}: two waves of four tiles at 1.25 TFLOPS each. Operands and results, and the
    // scores six times, cross memory.
    const Attention attention{4, 256, 128, 128};
    const double wave = 2 * 256 * 128 * (128 + 6.4) / 1.25e12;
    const double bytes = 4.0 * 4 * (1.46 * 128 * (2 * 256 + 2 * 128) + 6 * 256 * 128);
    EXPECT_NEAR(time(attention, DataType::f32), 2 * wave + bytes / 500e9, 1e-9);
    // Software that moves them once in 16 bits moves them once.
    TileModel fused = *d.tiles;
    fused.elementwise_passes = {1, "counted"};
    const double twice = time(norm, DataType::f16);
    d.tiles = std::make_shared<const TileModel>(fused);
    EXPECT_NEAR(time(norm, DataType::f32), twice, 1e-12);
}

// A bias, a dropout and an addition: forward two tensors are read, one is written, and a mask of a byte a value;
// backward the mask is read with the gradient, one is written, which the bias's own gradient reads, and the two
// gradients of what was added to are added up. Nothing else of them crosses memory but the bias itself.
TEST(TilePrices, OfABiasADropoutAndAnAdditionAreOneKernelWhereTheyAreFused) {
    DeviceClass d = tiled();
    TileModel model = *d.tiles;
    model.elementwise_passes = {1, "fused"};
    d.tiles = std::make_shared<const TileModel>(model);
    const Shape rows{1024, 4096};
    const auto time = [&](const Op& op, Pass pass) { return price({op, pass, 1, DataType::f16}, d).time.value; };
    const auto all = [&](Pass pass) {
        return time(Bias{rows, 1}, pass) + time(Dropout{rows, 0.9}, pass) + time(Add{rows}, pass);
    };
    const double once = 1024.0 * 4096 * 2 / 500e9;
    EXPECT_NEAR(all(Pass::forward) / once, 3.5, 0.003);
    EXPECT_NEAR((all(Pass::backward_data) + time(Bias{rows, 1}, Pass::backward_weights)) / once, 6.5, 0.003);
    model.elementwise_passes = {2, "apart"};
    d.tiles = std::make_shared<const TileModel>(model);
    EXPECT_NEAR(all(Pass::forward) / once, 2 * 7, 0.003);
}

// Twice the batch is twice the operations and twice the bytes: one step to the right and one up. Samples of other
// passes and types are no neighbours.
TEST(NearestSamples, AreToldByOperationsAndBytes) {
    DeviceClass d = device();
    const Op op = Add{{1024}};
    const auto measured = [&](Pass pass, std::int64_t batch, DataType type) {
        d.measured[to_string(Problem{op, pass, batch, type})] = {1_us, 0.05, 20, "host"};
    };
    for (const std::int64_t batch : {1, 2, 8}) measured(Pass::forward, batch, DataType::f32);
    measured(Pass::forward, 4, DataType::f16);
    const std::vector<NearSample> near = nearest_samples({op, Pass::forward, 4, DataType::f32}, d, 2);
    const double rounding = 8 * 0x1p-49;  // of logarithms between 8 and 16, each to 2^-49, and their differences
    ASSERT_EQ(near.size(), 2U);
    EXPECT_NEAR(near[0].distance, std::sqrt(2.0), rounding);
    EXPECT_NEAR(near[1].distance, std::sqrt(2.0), rounding);
    EXPECT_EQ(near[0].problem.batch + near[1].problem.batch, 2 + 8);
    EXPECT_EQ(near[0].basis, Basis::measured_on_class);
    EXPECT_NEAR(nearest_samples({op, Pass::forward, 4, DataType::f32}, d, 9).back().distance, 2 * std::sqrt(2.0),
                rounding);
}

}  // namespace
}  // namespace rehearse
