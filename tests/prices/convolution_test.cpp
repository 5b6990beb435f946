// SPDX-License-Identifier: Apache-2.0
#include "prices/convolution/families.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prices/kernel_point.hpp"
#include "prices/library_point.hpp"

namespace rehearse::prices {
namespace {

Problem conv(std::int64_t batch, std::int64_t channels, std::int64_t side, std::int64_t filters,
             std::int64_t kernel = 3, std::int64_t stride = 1, Pass pass = Pass::forward) {
    const std::int64_t pad = kernel / 2;
    return {Conv{channels, side, side, filters, Window{kernel, kernel, stride, stride, pad, pad, pad, pad}}, pass,
            batch, DataType::f32};
}

ConvolutionShape shape_of(const Problem& problem) { return convolution_shape(problem).value(); }

const Board p100{FlopRate{9.34e12}, Bandwidth{732e9}, 56, Bytes{4}, true};
const Board v100{FlopRate{14.13e12}, Bandwidth{900e9}, 80, Bytes{4}, false};

// The grid that NeuSight recorded for maxwell_scudnn_winograd_..._tile244n on the P100: 209 blocks. By hand: 3 x 3
// tiles of 2x2 results an image of 5x5, so blocks of 2 images x 4 x 4 tiles: 19 pairs of 38 images, 11 times 32 of 326
// filters.
TEST(WinogradFused, HasAsManyBlocksAsTheKernelThatRan) {
    EXPECT_EQ(winograd_fused(shape_of(conv(38, 893, 5, 326)), p100)->blocks, 209);
    EXPECT_EQ(winograd_fused(shape_of(conv(38, 893, 5, 326)), v100)->blocks, 418) << "one image a block";
}

// 33 x 33 results are 17 x 17 tiles of 2x2, rounded up to 5 x 4 rows and 3 x 8 columns: 20 x 24 tiles of 4 results; 33
// filters to 64.
TEST(WinogradFused, RoundsImagesAndFiltersUp) {
    const FamilyTime time = winograd_fused(shape_of(conv(1, 64, 33, 33)), v100).value();
    EXPECT_EQ(time.blocks, 5 * 3 * 2);
    EXPECT_DOUBLE_EQ(time.waste, (20 * 24 * 4.0 * 64) / (33 * 33 * 33));
}

// One pixel more than a multiple of four: 2 x 2 tiles of 16 results for 5 x 5, and 64 of 64 filters; 36 products of 4
// tiles.
TEST(WinogradTransformed, RoundsImagesUpToTilesOfFour) {
    const FamilyTime five = winograd_transformed(shape_of(conv(4096, 64, 5, 64)), v100).value();
    const FamilyTime four = winograd_transformed(shape_of(conv(4096, 64, 4, 64)), v100).value();
    EXPECT_DOUBLE_EQ(five.waste, 64.0 / 25);
    EXPECT_DOUBLE_EQ(four.waste, 1);
    EXPECT_GT(five.time, four.time * 2) << "25 results cost what 64 do, 16 what they are";
}

TEST(Families, KnowWhatTheyCannotDo) {
    EXPECT_FALSE(winograd_fused(shape_of(conv(8, 64, 28, 64, 3, 2)), v100)) << "skips pixels";
    EXPECT_FALSE(winograd_transformed(shape_of(conv(8, 64, 28, 64, 5)), v100)) << "5x5";
    EXPECT_FALSE(winograd_fused(shape_of(conv(8, 64, 28, 64, 3, 1, Pass::backward_weights)), v100));
    EXPECT_TRUE(winograd_transformed(shape_of(conv(8, 64, 28, 64, 3, 1, Pass::backward_weights)), v100));
    EXPECT_FALSE(fourier(shape_of(conv(8, 64, 28, 64, 1)), v100)) << "a product already";
    EXPECT_FALSE(fourier(shape_of(conv(8, 64, 28, 64, 5, 2)), v100)) << "skips pixels";
    Problem depthwise = conv(8, 64, 28, 64);
    std::get<Conv>(depthwise.op).groups = 64;
    EXPECT_FALSE(implicit_gemm(shape_of(depthwise), v100));
    EXPECT_FALSE(grouped(shape_of(depthwise), v100)) << "products of one channel";
    EXPECT_EQ(library_choice(shape_of(depthwise), v100).name(), "direct");
    std::get<Conv>(depthwise.op).groups = 32;
    EXPECT_TRUE(grouped(shape_of(depthwise), v100));
}

TEST(LibraryChoice, IsTheLeastOfTheFamilies) {
    const auto name = [](const Problem& problem) { return library_choice(shape_of(problem), v100).name(); };
    EXPECT_EQ(name(conv(32, 256, 56, 256)), "winograd not fused");
    EXPECT_EQ(name(conv(32, 64, 56, 64, 1)), "implicit gemm");
    EXPECT_EQ(name(conv(64, 100, 60, 4)), "winograd")
        << "of 137 kernels for up to four filters 118 were fused Winograd's and one a direct one (NeuSight)";
    for (const Problem& problem : {conv(32, 256, 56, 256), conv(1, 3, 7, 5), conv(4, 512, 7, 512, 3, 2)}) {
        const LibraryChoice choice = library_choice(shape_of(problem), v100);
        for (const auto& time : choice.times) EXPECT_LE(choice.best().time, time.value_or(choice.best()).time);
    }
}

// No algorithm multiplies less than Winograd's 4x4 tiles (36 products where 144 are wanted) or reads less than all.
TEST(LibraryChoice, IsNeverFasterThanArithmeticOrMemory) {
    for (const std::int64_t side : {7, 14, 33, 56})
        for (const std::int64_t channels : {3, 64, 500})
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                const ConvolutionShape shape = shape_of(conv(16, channels, side, 128, 3, 1, pass));
                const Seconds time = library_choice(shape, v100).best().time;
                EXPECT_GE(time, Flops{2 * shape.products() / 4} / v100.peak);
                EXPECT_GE(time, shape.values() * v100.element / v100.bandwidth);
            }
}

// The gradient of the images of a convolution by one pixel is a convolution with channels and filters exchanged.
TEST(ConvolutionShape, OfBackwardDataHasChannelsAndFiltersExchanged) {
    const ConvolutionShape back = shape_of(conv(8, 64, 28, 128, 3, 1, Pass::backward_data));
    EXPECT_EQ(back.channels, 128);
    EXPECT_EQ(back.filters, 64);
    EXPECT_EQ(back.products(), shape_of(conv(8, 64, 28, 128)).products());
}

// DeepBench on a V100: 8 and 16 images of 14x14 gradients of 512 filters are 13 and 25 tiles of 128 for 128 channels,
// one a processor at most, so that both take as long: 139 and 146 us. In tiles of 32 channels the smaller batch would
// take a third.
TEST(ImplicitGemm, SpreadsGradientsInItsLargestTiles) {
    const auto gradient = [](std::int64_t batch) {
        return implicit_gemm(shape_of(conv(batch, 128, 28, 512, 1, 2, Pass::backward_data)), v100).value();
    };
    EXPECT_EQ(gradient(8).blocks, 13);
    EXPECT_EQ(gradient(16).blocks, 25);
    EXPECT_LT(gradient(16).time, gradient(8).time * 1.3);
}

// By hand: every second row and column of 8 images of 128 x 28 x 28 is read, 512 x 14 x 14 results are written. Of the
// gradient of the images all pixels are written, the other way round.
TEST(ConvolutionShape, CountsThePixelsThatWindowsTouch) {
    const double results = 8.0 * 512 * 14 * 14, filters = 128 * 512;
    EXPECT_EQ(shape_of(conv(8, 128, 28, 512, 1, 2)).values(), 8.0 * 128 * 14 * 14 + results + filters);
    EXPECT_EQ(shape_of(conv(8, 128, 28, 512, 1, 2, Pass::backward_data)).values(),
              8.0 * 128 * 28 * 28 + results + filters);
    EXPECT_EQ(shape_of(conv(8, 128, 28, 512, 3, 2)).values(), 8.0 * 128 * 28 * 28 + results + 9 * filters);
}

// One tap: 128 x 128 alone, so that filters of 256 x 64 fill half of two tiles, in k of 64 parts of 784 pixels.
TEST(ImplicitGemm, HasGradientsOfFiltersOfOneTapInItsLargestTiles) {
    const Problem problem = conv(16, 256, 56, 64, 1, 1, Pass::backward_weights);
    EXPECT_EQ(implicit_gemm(shape_of(problem), v100)->waste, 2);
    EXPECT_EQ(std::fmod(implicit_gemm(shape_of(problem), v100)->blocks, 2), 0);
    EXPECT_EQ(implicit_gemm(shape_of(conv(16, 256, 56, 64, 3, 1, Pass::backward_weights)), v100)->waste, 1)
        << "of several taps in tiles as wide as the filters are many";
}

// Groups of 32 channels and filters in tiles of 128 x 32: a gradient of images fills them, one of filters a quarter of
// their rows. In tiles of 128 x 128 it would be a quarter and a sixteenth.
TEST(ImplicitGemm, HasGradientsOfGroupsInNarrowTiles) {
    const auto waste = [](Pass pass) {
        Problem problem = conv(32, 1024, 28, 1024, 1, 2, pass);
        std::get<Conv>(problem.op).groups = 32;
        return grouped(shape_of(problem), v100)->waste;
    };
    EXPECT_EQ(waste(Pass::backward_data), 1);
    EXPECT_EQ(waste(Pass::backward_weights), 4);
}

// 3 x 3 x 3 comes as 9 x 3.
TEST(Fourier, TransformsSquareFiltersAlone) {
    Problem problem = conv(8, 64, 128, 64, 9, 1);
    EXPECT_TRUE(fourier(shape_of(problem), v100));
    std::get<Conv>(problem.op).window.kernel_w = 3;
    EXPECT_FALSE(fourier(shape_of(problem), v100));
}

// Two blocks a processor: 160 fill 80 processors once; of 161 one runs alone, in 0.641 of the time of two.
TEST(Waves, RoundUpToWholeOnes) {
    const Flops work{1e6};
    const Seconds full = in_waves(160, work, 0.5, v100);
    EXPECT_DOUBLE_EQ(full.value, 2 * 1e6 / (14.13e12 / 80 * 0.5));
    EXPECT_DOUBLE_EQ(in_waves(161, work, 0.5, v100) / full, 1.641);
    EXPECT_DOUBLE_EQ(in_waves(241, work, 0.5, v100) / full, 2);
}

// (70 W / 8.14 TFLOP/s / 16)^0.4 = 0.537^0.4 = 0.780; 250 W / 14.13 = 17.7 is enough.
TEST(SustainedClock, IsLowerWhereThePowerLimitIs) {
    EXPECT_NEAR(sustained_clock(70, FlopRate{8.14e12}), 0.780, 0.001);
    EXPECT_EQ(sustained_clock(250, FlopRate{14.13e12}), 1);
}

TEST(LibraryPoint, IsOfWhatWasMeasuredOnly) {
    EXPECT_TRUE(library_point(conv(8, 64, 28, 64), v100));
    EXPECT_FALSE(library_point(conv(8, 64, 28, 64, 1), v100));
    EXPECT_FALSE(library_point(conv(8, 64, 28, 64, 3, 1, Pass::backward_data), v100));
    Problem half = conv(8, 64, 28, 64);
    half.type = DataType::f16;
    EXPECT_FALSE(library_point(half, v100));
    EXPECT_EQ(library_point(conv(8, 64, 28, 64), v100)->point.features.size(), feature_names("conv2d").size());
}

}  // namespace
}  // namespace rehearse::prices
