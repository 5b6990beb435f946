// SPDX-License-Identifier: Apache-2.0
#include "prices/price_model.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/machine.hpp"
#include "prices/prices.hpp"

namespace rehearse {
namespace {

using namespace literals;

const DeviceSheet sheet{10_TFLOPS, 100_GBps, 4, 1, 4_B};

Problem conv(std::int64_t channels, std::int64_t filters, std::int64_t batch, Pass pass = Pass::forward) {
    return {Conv{channels, 16, 16, filters, Window{3, 3, 1, 1, 1, 1, 1, 1}}, pass, batch, DataType::f32};
}

// 64 -> 128 channels of 16x16, batch 2: the table in kernel_point.hpp, by hand.
TEST(KernelPoints, AreProductsAsLibrariesSeeThem) {
    const Conv op = std::get<Conv>(conv(64, 128, 2).op);
    const auto sizes = [&](Pass pass) {
        const ProductSizes p = product_sizes(op, pass, 2);
        return std::vector{p.m, p.n, p.k};
    };
    EXPECT_THAT(sizes(Pass::forward), testing::ElementsAre(128, 512, 576));
    EXPECT_THAT(sizes(Pass::backward_data), testing::ElementsAre(64, 512, 1152));
    EXPECT_THAT(sizes(Pass::backward_weights), testing::ElementsAre(128, 576, 512));
    const MatMul dense{1, 1000, 2048, false};  // 2048 -> 1000 features, 32 rows
    const ProductSizes back = product_sizes(dense, Pass::backward_data, 32);
    EXPECT_THAT((std::vector{back.m, back.n, back.k}), testing::ElementsAre(2048, 32, 1000));
    const ProductSizes gradient = product_sizes(dense, Pass::backward_weights, 32);
    EXPECT_THAT((std::vector{gradient.m, gradient.n, gradient.k}), testing::ElementsAre(1000, 2048, 32));
}

TEST(KernelPoints, HaveTheRooflinesOfTheirDevice) {
    const auto point = kernel_point(conv(64, 128, 2), sheet);
    ASSERT_TRUE(point);
    EXPECT_DOUBLE_EQ(point->bounds.compute.value, 2.0 * 2 * 128 * 256 * 64 * 9 / 10e12);
    EXPECT_DOUBLE_EQ(point->bounds.memory.value, 4.0 * (2 * 256 * (64 + 128) + 64 * 128 * 9) / 100e9);
    // m = 128, n = 512, so 1 x 4 tiles of 128 x 128 on four processors: one whole wave, nothing wasted.
    EXPECT_EQ(point->point.features[10], 0);
    EXPECT_EQ(point->point.features[12], 0);
    // Tensor cores pad one channel to eight.
    DeviceSheet tensor = sheet;
    tensor.channel_multiple = 8;
    const double one = kernel_point(conv(1, 128, 2), tensor)->bounds.compute.value;
    EXPECT_DOUBLE_EQ(one, kernel_point(conv(8, 128, 2), tensor)->bounds.compute.value);
    EXPECT_DOUBLE_EQ(one, 8 * kernel_point(conv(1, 128, 2), sheet)->bounds.compute.value);
}

// Forward {1760 x k} x {k x n}: rows of the left operand lie m = 1760 = 2^5 * 55 apart, of the right one k; the left
// one transposed: both k. Powers of two count up to 2,048. 16 bytes are four values of f32, eight of f16.
TEST(KernelPoints, KnowHowFarApartTheRowsOfProductsLie) {
    const auto rows = [](std::int64_t m, std::int64_t n, std::int64_t k, Pass pass, Bytes element = 4_B) {
        DeviceSheet typed = sheet;
        typed.element = element;
        const MatMul op = pass == Pass::forward         ? MatMul{1, m, k, false}
                          : pass == Pass::backward_data ? MatMul{1, k, m, false}
                                                        : MatMul{1, m, n, false};
        const std::int64_t batch = pass == Pass::backward_weights ? k : n;
        const auto point = kernel_point({op, pass, batch, DataType::f32}, typed);
        const std::vector<double>& f = point.value().point.features;
        return std::vector{f[4], f[5], f[6]};
    };
    EXPECT_THAT(rows(1760, 64, 4096, Pass::forward), testing::ElementsAre(0, 5, 11));
    EXPECT_THAT(rows(1760, 64, 2560, Pass::backward_data), testing::ElementsAre(0, 9, 9));
    EXPECT_THAT(rows(2048, 7133, 1024, Pass::backward_weights), testing::ElementsAre(2, 11, 0));
    EXPECT_THAT(rows(5124, 64, 2048, Pass::forward), testing::ElementsAre(0, 2, 11));
    EXPECT_THAT(rows(5124, 64, 2048, Pass::forward, 2_B), testing::ElementsAre(2, 2, 11));
    EXPECT_EQ(feature_names("matmul").size(), 13U);
}

// 1024 values of f32 are 4 KB: rows so far apart, or a multiple of it, against all others.
TEST(KernelPoints, OfPagedDevicesKnowWhetherRowsLieAMultipleOfFourKilobytesApart) {
    DeviceSheet paged = sheet;
    paged.paged = true;
    const auto rows = [&](std::int64_t m, std::int64_t k) {
        const auto point = kernel_point({MatMul{1, m, k, false}, Pass::forward, 64, DataType::f32}, paged);
        const std::vector<double>& f = point.value().point.features;
        return std::vector{f[5], f[6]};
    };
    EXPECT_THAT(rows(1760, 4096), testing::ElementsAre(0, 4));
    EXPECT_THAT(rows(3072, 2560), testing::ElementsAre(4, 0)) << "12 KB and 10 KB";
    EXPECT_THAT(rows(512, 35), testing::ElementsAre(0, 0));
}

// 10 us before anything moves, and kernels of 16, 32 and 64 columns; where a sheet has no start neither counts.
TEST(KernelPoints, OfFewColumnsHaveAStartAndAWidth) {
    DeviceSheet started = sheet;
    started.start = 10_us;
    const auto product = [](std::int64_t n) {
        return Problem{MatMul{1, 1024, 2048, false}, Pass::forward, n, DataType::f32};
    };
    const auto widths = [&](std::int64_t n, const DeviceSheet& on) {
        const std::vector<double> f = kernel_point(product(n), on).value().point.features;
        return std::vector{f[7], f[8], f[9]};
    };
    EXPECT_THAT(widths(16, started), testing::ElementsAre(0, 0, 0));
    EXPECT_THAT(widths(17, started), testing::ElementsAre(2, 0, 0));
    EXPECT_THAT(widths(64, started), testing::ElementsAre(2, 2, 0));
    EXPECT_THAT(widths(65, started), testing::ElementsAre(2, 2, 2));
    EXPECT_THAT(widths(65, sheet), testing::ElementsAre(0, 0, 0));
    const Bounds with = kernel_point(product(16), started)->bounds, without = kernel_point(product(16), sheet)->bounds;
    EXPECT_NEAR(with.overlapped().value, without.overlapped().value + 10e-6, 1e-15);
    EXPECT_NEAR(with.in_turn().value, without.in_turn().value + 10e-6, 1e-15);
    EXPECT_EQ(kernel_point(conv(64, 64, 2), started)->bounds.start, Seconds{0}) << "of convolutions nothing is known";
}

TEST(KernelPoints, RefuseWhatWasNeverMeasured) {
    Problem grouped = conv(64, 64, 2);
    std::get<Conv>(grouped.op).groups = 64;
    EXPECT_FALSE(kernel_point(grouped, sheet));
    Problem lopsided = conv(64, 64, 2);
    std::get<Conv>(lopsided.op).window.pad_top += 40;
    EXPECT_FALSE(kernel_point(lopsided, sheet)) << "no padding of as much on both sides has as many windows";
    EXPECT_FALSE(kernel_point({Activation{Nonlinearity::relu, {64}}, Pass::forward, 2, DataType::f32}, sheet));
    EXPECT_FALSE(kernel_point(conv(64, 64, 2, Pass::update), sheet));
}

// A convolution of 3x3 that no library would run as the product that it is: the bound of the library's algorithms is
// known where its blocks are, and its features come last, so that experts with fewer lengths do not see them.
TEST(KernelPoints, HaveTheBoundOfAKnownLibrary) {
    DeviceSheet known = sheet;
    known.image_blocks = ImageBlocks::one;
    const Problem problem = conv(64, 64, 32);
    const KernelPoint without = kernel_point(problem, sheet).value(), with = kernel_point(problem, known).value();
    EXPECT_EQ(without.bounds.library, Seconds{0});
    const prices::Board board{sheet.peak, sheet.bandwidth, 4, sheet.element};
    EXPECT_EQ(with.bounds.library,
              prices::library_choice(prices::convolution_shape(problem).value(), board).best().time);
    const std::vector<double>& few = without.point.features;
    const std::vector<double>& many = with.point.features;
    ASSERT_EQ(many.size(), few.size() + features_of_library);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
    EXPECT_EQ(many.back(), 2 * std::log(with.bounds.library / with.bounds.in_turn()));
    EXPECT_EQ(kernel_point(Problem{MatMul{1, 64, 64, false}, Pass::forward, 64, DataType::f32}, known)->bounds.library,
              Seconds{0})
        << "of products none";
}

// A device whose every kernel takes `factor` times the longer of the two bounds.
MeasuredKernels steady(double factor) {
    const std::size_t features = feature_names("conv2d").size();
    const Covariance covariance{Smoothness::gaussian,
                                {CovarianceTerm{0.5, 0.5, std::vector<double>(features, 4.0)},
                                 CovarianceTerm{0.1, 0.5, std::vector<double>(features, 1.0)}},
                                0.01};
    MeasuredKernels kernels{"conv2d", DataType::f32, sheet, {}, {{LowerBound::overlapped, covariance}}, 1, "a toy"};
    for (const std::int64_t channels : {32, 64, 128, 256}) {
        for (const std::int64_t filters : {32, 64, 128, 256}) {
            const Problem problem = conv(channels, filters, 8);
            const auto point = kernel_point(problem, sheet);
            kernels.samples.push_back({problem, point->bounds.overlapped() * factor});
        }
    }
    return kernels;
}

TEST(PriceModel, LearnsAShareOfTheRooflineAndKnowsWhereItIsAStranger) {
    const KernelPrices prices{steady(3)};
    const Problem between = conv(96, 200, 8), far = {Conv{3, 2000, 2000, 7, Window{11, 11, 7, 7}}, Pass::forward, 1};
    const auto near = prices.at(between), lost = prices.at(far);
    ASSERT_TRUE(near && lost);
    const double bound = kernel_point(between, sheet)->bounds.overlapped().value;
    EXPECT_NEAR(std::exp(near->log_time) / bound, 3, 3 * 0.05);  // values are constant: within the noise of 1 % and
                                                                 // a prior that pulls by less than five of it
    EXPECT_FALSE(near->beyond);
    EXPECT_TRUE(lost->beyond);
    EXPECT_GT(lost->deviation, 5 * near->deviation);
    // Far away the offset is what is left: the roofline at the device's usual share, less the offset's own shrinkage of
    // v / (v + s) with v = 1 and s of the order of 0.26: between 3^0.7 = 2.2 and 3.
    const double far_bound = kernel_point(far, sheet)->bounds.overlapped().value;
    EXPECT_GT(std::exp(lost->log_time) / far_bound, 2.1);
    EXPECT_LT(std::exp(lost->log_time) / far_bound, 3.1);
}

TEST(PriceModel, StandsBetweenMeasuredProblemsAndTheRoofline) {
    DeviceClass device;
    device.name = "toy";
    device.peak[DataType::f32] = {10_TFLOPS, "data sheet"};
    device.memory_bandwidth = {100_GBps, "data sheet"};
    device.launch = {5_us, "measured"};
    device.model = std::make_shared<const PriceModel>("toy", std::vector{steady(3)});
    const Problem problem = conv(64, 64, 8);
    const Price modelled = price(problem, device);
    EXPECT_THAT(modelled.source, testing::AllOf(testing::HasSubstr("16 conv2d"), testing::HasSubstr("a toy")));
    EXPECT_NEAR(modelled.time.value, 3 * kernel_point(problem, sheet)->bounds.overlapped().value + 5e-6,
                0.05 * modelled.time.value);
    const Price pool = price({Activation{Nonlinearity::relu, {64, 8, 8}}, Pass::forward, 8, DataType::f32}, device);
    EXPECT_THAT(pool.source, testing::HasSubstr("roofline"));
    device.measured[to_string(problem)] = {7_us, 0.01, 3, "measured here"};
    EXPECT_EQ(price(problem, device).time, 7_us);
}

// 64 filters of 16 x 16 pixels, 8 images: 524,288 bytes, read and written forward, read once more backward, at 100
// GB/s.
TEST(PriceModel, AddsABiasInAKernelOfItsOwn) {
    DeviceClass device;
    device.name = "toy";
    device.peak[DataType::f32] = {10_TFLOPS, "data sheet"};
    device.memory_bandwidth = {100_GBps, "data sheet"};
    device.launch = {5_us, "measured"};
    device.efficiencies = {{"*", {}, {}, 1.0, 0.1, "assumed"}};
    device.model = std::make_shared<const PriceModel>("toy", std::vector{steady(3)});
    const auto more = [&](Pass pass, bool relu) {
        Problem problem = conv(64, 64, 8, pass);
        const Seconds without = price(problem, device).time;
        auto& op = std::get<Conv>(problem.op);
        op.bias = true;
        op.relu = relu;
        return (price(problem, device).time - without).value;
    };
    EXPECT_NEAR(more(Pass::forward, false), 5e-6 + 2 * 524288 / 100e9, 5e-9);
    EXPECT_NEAR(more(Pass::backward_weights, false), 5e-6 + 524288 / 100e9, 5e-9);
    EXPECT_NEAR(more(Pass::backward_data, false), 0, 1e-12);
    EXPECT_NEAR(more(Pass::forward, true), 0, 1e-12) << "joined by a compiler";
}

TEST(Experts, ThatDisagreeWidenTheBand) {
    const std::vector<Estimate> agreeing{{1, 0.04}, {1, 0.04}}, apart{{0.9, 0.04}, {1.1, 0.04}};
    EXPECT_DOUBLE_EQ(combine(agreeing, 1, 1).deviation, 0.2);
    EXPECT_NEAR(combine(apart, 1, 1).deviation, std::sqrt(0.04 + 0.01), 1e-12);
    EXPECT_NEAR(combine(apart, 2, 1).log_time, 1, 1e-12);
    EXPECT_DOUBLE_EQ(combine(agreeing, 100, 1).deviation, band_limit);
}

}  // namespace
}  // namespace rehearse
