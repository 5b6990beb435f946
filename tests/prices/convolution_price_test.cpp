// SPDX-License-Identifier: Apache-2.0
#include "prices/convolution_price.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "prices/price_model.hpp"
#include "prices/tile_model.hpp"

namespace rehearse {
namespace {

using namespace literals;

// Four processors: 100 TFLOPS in f16 on matrix units, 10 in f32; 1 TB/s; a call takes 3 us.
DeviceClass gpu() {
    TileModel model;
    model.processors = {4, "sheet"};
    DeviceClass d;
    d.name = "card";
    d.peak[DataType::f16] = {100_TFLOPS, "sheet"};
    d.peak[DataType::f32] = {10_TFLOPS, "sheet"};
    d.memory_bandwidth = {1000_GBps, "sheet"};
    d.launch = {3_us, "sheet"};
    d.tiles = std::make_shared<const TileModel>(model);
    return d;
}

Conv filters_of(std::int64_t groups) { return {64, 100, 100, 64, Window{3, 3, 1, 1, 1, 1, 1, 1}, groups}; }

// A fifth of 10 TFLOPS, outside of the matrix units, whatever the type: 2 x 8 x 10^4 x 64 x 9 operations are 46.08 us;
// 2 x 8 x 64 x 10^4 values and 576 of the filters at 481 GB/s are 42.6 us in f16 and 85.2 us in f32. 0.65 us to begin.
TEST(ConvolutionPrice, OfDepthwiseFiltersIsDirect) {
    const auto time = [](Pass pass, DataType type) {
        return convolution_price({filters_of(64), pass, 8, type}, gpu()).value().time.value;
    };
    const double read = (2 * 8 * 64 * 1e4 + 576) * 4 / 481e9;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        EXPECT_NEAR(time(pass, DataType::f16), 2.5 * (46.08e-6 + 0.65e-6) + 3e-6, 1e-12);
        EXPECT_NEAR(time(pass, DataType::f32), 2.5 * (read + 0.65e-6) + 3e-6, 1e-12);
    }
    const Price price = convolution_price({filters_of(64), Pass::forward, 8, DataType::f16}, gpu()).value();
    EXPECT_EQ(price.error, 0.7);
    EXPECT_THAT(price.source, testing::AllOf(testing::HasSubstr("direct"), testing::HasSubstr("card")));
}

// Lanes that take two f16 at once: half the bytes, and sums in f32, at their rate; no longer than in f32, and known
// less well. With bf16 or TF32, which lanes have not, or at four times the rate it is matrix units that multiply.
TEST(ConvolutionPrice, InF16OnLanesIsComputedInF32) {
    const auto priced = [](DataType type, double times, bool bf16) {
        DeviceClass device = gpu();
        device.peak[DataType::f16].value = times * 10_TFLOPS;
        if (bf16) device.peak[DataType::bf16] = device.peak[DataType::f16];
        return convolution_price({filters_of(1), Pass::forward, 8, type}, device).value();
    };
    const Price full = priced(DataType::f32, 2, false), half = priced(DataType::f16, 2, false);
    EXPECT_LE(half.time, full.time);
    EXPECT_GT(half.time, 0.5 * full.time);
    EXPECT_EQ(half.error, 0.7);
    EXPECT_THAT(half.source, testing::HasSubstr("computed in f32"));
    EXPECT_THAT(priced(DataType::f16, 4, false).source, testing::HasSubstr("V100 and T4"));
    EXPECT_LE(priced(DataType::f16, 2, true).time, full.time);
}

// Planes that no filter joins are images.
TEST(ConvolutionPrice, OfVolumesIsThatOfTheirPlanes) {
    const Problem planes{
        Conv{64, 100, 100, 64,
             Window{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}, 64,
             false, false, 4},
        Pass::forward, 2, DataType::f32};
    const Problem images{filters_of(64), Pass::forward, 8, DataType::f32};
    EXPECT_DOUBLE_EQ(convolution_price(planes, gpu())->time.value, convolution_price(images, gpu())->time.value);
}

// Of 32 channels a group a product fills its tiles: on matrix units it takes less than a thread a result would.
TEST(ConvolutionPrice, TakesProductsWhereGroupsAreWide) {
    const Price wide = convolution_price({filters_of(2), Pass::forward, 8, DataType::f16}, gpu()).value();
    EXPECT_THAT(wide.source, testing::HasSubstr("grouped"));
    const double direct = 2.5 * 2 * 8 * 1e4 * 64 * 32 * 9 / 2e12;
    EXPECT_LT(wide.time.value, direct);
}

TEST(ConvolutionPrice, KnowsWhatItIsNotFor) {
    const Problem grouped{filters_of(64), Pass::forward, 8, DataType::f32};
    EXPECT_FALSE(convolution_price({filters_of(64), Pass::update, 8, DataType::f32}, gpu()));
    EXPECT_FALSE(convolution_price({filters_of(64), Pass::forward, 8, DataType::bf16}, gpu())) << "no such peak";
    DeviceClass other = gpu();
    other.host = true;
    EXPECT_FALSE(convolution_price(grouped, other)) << "a processor";
    other = gpu();
    other.tiles = nullptr;
    EXPECT_FALSE(convolution_price(grouped, other)) << "nobody knows how many processors";
    EXPECT_FALSE(convolution_price({Softmax{10}, Pass::forward, 8, DataType::f32}, gpu()));
    // `price` then takes the roofline's share.
    other.efficiencies = {{"conv2d", {}, {}, 0.5, 0.2, "conv"}};
    EXPECT_EQ(price(grouped, other).error, 0.2);
    EXPECT_EQ(price(grouped, gpu()).error, 0.7);
}

// A share of the device's own for convolutions comes first, but where there are groups: it is of those without.
TEST(ConvolutionPrice, GivesWayToAShareOfTheDevice) {
    DeviceClass device = gpu();
    const Problem plain{filters_of(1), Pass::forward, 8, DataType::f32};
    const Problem strided{
        conv3d(32, 16, 16, 16, 32,
               Window{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .kernel_d = 3, .stride_d = 2}, 1,
               false),
        Pass::backward_weights, 8, DataType::f16};
    device.efficiencies = {{"*", {}, {}, 0.8, 0.1, "any"}};
    EXPECT_EQ(price(plain, device).error, 0.45);
    EXPECT_EQ(price(strided, device).error, 0.7);
    device.efficiencies.push_back({"conv2d", {}, {}, 0.5, 0.2, "conv"});
    EXPECT_EQ(price(plain, device).error, 0.2);
    EXPECT_EQ(price(strided, device).error, 0.7) << "of images alone";
    device.efficiencies.push_back({"conv3d", {}, {}, 0.5, 0.3, "conv"});
    EXPECT_EQ(price(strided, device).error, 0.3);
}

// Of groups as wide as a tile none takes longer than as many convolutions one after the other; of narrower ones, where
// a tile stays empty, only kernels for groups are known.
TEST(ConvolutionPrice, OfWideGroupsIsAtMostThatOfAsManyConvolutions) {
    DeviceClass device = gpu();
    device.efficiencies = {{"conv2d", {}, {}, 0.9, 0.2, "conv"}};
    const auto price_of = [&](std::int64_t filters, std::int64_t groups) {
        Conv conv = filters_of(groups);
        conv.channels = conv.filters = filters;
        return price({conv, Pass::forward, 8, DataType::f32}, device);
    };
    const Price wide = price_of(128, 2), half = price_of(64, 1), narrow = price_of(128, 4);
    EXPECT_DOUBLE_EQ(wide.time.value, 2 * half.time.value);
    EXPECT_EQ(wide.error, half.error);
    EXPECT_THAT(wide.source, testing::HasSubstr("2 times conv2d:c64"));
    EXPECT_GT(narrow.time.value, 4 * price_of(32, 1).time.value);
    EXPECT_THAT(narrow.source, testing::HasSubstr("times the least of a library's algorithms"));
}

// Four channels of 27 taps and 32 filters are one tile of 128 x 32, of which a lone block takes 0.641 of two: those of
// two samples of 16^3 voxels are two blocks on four processors, whatever the voxels; of eight, two a processor at a
// time.
TEST(ConvolutionPrice, OfVolumesBySampleIsABlockForEachTileAndSample) {
    DeviceClass by_sample = gpu(), cut = gpu();
    by_sample.model = PriceModel{"", {}}.with_volumes_by_sample(true);
    const Window cube{3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 1};
    const Conv conv = conv3d(4, 16, 16, 16, 32, cube, 1, false);
    const auto time = [&](const Conv& op, Pass pass, std::int64_t batch) {
        return price_by_sample({op, pass, batch, DataType::f32}, by_sample).value().time.value;
    };
    const double block = 2.0 * 128 * 32 * (4096 + 19.4) / (10e12 * 0.753 / 4);
    const auto expected = [&](double computed, double samples) {
        const double values = samples * 4096 * (4 + 32) + 108 * 32 + 2 * samples * 108 * 32;
        return 1.2 * (std::cbrt(std::pow(computed, 3) + std::pow(values * 4 / 481e9, 3)) + 0.65e-6) + 3e-6;
    };
    EXPECT_NEAR(time(conv, Pass::backward_weights, 2), expected(2 * 0.641 * block, 2), 1e-9);
    EXPECT_NEAR(time(conv, Pass::backward_weights, 8), expected(2 * block, 8), 1e-9);
    // `price` takes it for this pass alone, and where it is more than what is known otherwise.
    const auto of = [&](Pass pass, const DeviceClass& device) {
        return price({conv, pass, 2, DataType::f32}, device).time.value;
    };
    EXPECT_NEAR(of(Pass::backward_weights, by_sample), expected(2 * 0.641 * block, 2), 1e-9);
    EXPECT_LT(of(Pass::backward_weights, cut), of(Pass::backward_weights, by_sample) / 2);
    for (const Pass pass : {Pass::forward, Pass::backward_data}) EXPECT_EQ(of(pass, by_sample), of(pass, cut));
    Conv image = conv;
    image.depth = 0;
    EXPECT_FALSE(price_by_sample({image, Pass::backward_weights, 2, DataType::f32}, by_sample)) << "no volume";
    EXPECT_FALSE(price_by_sample({conv, Pass::backward_weights, 2, DataType::f32}, cut));
}

}  // namespace
}  // namespace rehearse
