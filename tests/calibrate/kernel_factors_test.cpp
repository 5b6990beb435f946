// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kernel_factors.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "calibrate/beyond_peak.hpp"
#include "core/error.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {
namespace {

using namespace literals;
using testing::HasSubstr;

// 1 TFLOP/s and 100 GB/s, of which every kernel is said to reach half, within 20 %.
DeviceClass card() {
    DeviceClass device;
    device.name = "card";
    device.peak[DataType::f32] = {FlopRate{1e12}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e11}, "sheet"};
    device.efficiencies.push_back(
        {.kind = "*", .pass = {}, .type = {}, .fraction = 0.5, .error = 0.2, .source = "half"});
    return device;
}

Problem dense(std::int64_t rows) { return {MatMul{.m = 1, .n = 512, .k = 1024}, Pass::forward, rows, DataType::f32}; }
Problem relu(std::int64_t batch) { return {Activation{Nonlinearity::relu, {100000}}, Pass::forward, batch}; }

std::vector<KernelSample> dense_layers(std::size_t count, double times) {
    std::vector<KernelSample> kernels;
    for (std::size_t i = 0; i < count; ++i) {
        const Problem problem = dense(256 + 32 * static_cast<std::int64_t>(i));
        kernels.push_back({problem, price(problem, card()).time * times});
    }
    return kernels;
}

std::string message(const std::vector<KernelSample>& kernels) {
    try {
        fit_factors(kernels, card(), "few.csv");
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

// 20 kernels at e^0.3 of prices that are known to 20 %: none lies away from the factor, so that the scale is
// sqrt(4 / 24), and the prices' weight 25 stands against 0.64 x 20 x 25 x 6 = 1920 of the kernels.
TEST(KernelFactor, IsTheMedianDrawnTowardsOne) {
    const std::vector<KernelRatio> ratios(20, KernelRatio{0.3, 0.2});
    const KernelFactor factor = kernel_factor(ratios);
    EXPECT_NEAR(factor.scale, std::sqrt(4.0 / 24), 1e-12);
    EXPECT_NEAR(factor.factor, std::exp(0.3 * 1920 / 1945), 1e-9);
    EXPECT_NEAR(factor.error, 1 / std::sqrt(1945), 1e-9);
    EXPECT_EQ(factor.kernels, 20);
}

TEST(KernelFactor, WidensTheBandWherePricesWereTooSureOfThemselves) {
    std::vector<KernelRatio> ratios;
    for (int i = 0; i < 21; ++i) ratios.push_back({i % 2 == 0 ? 0.4 : -0.4, 0.2});
    EXPECT_GT(kernel_factor(ratios).scale, 1.5);
    ratios.assign(21, {0.1, 0.2});
    const KernelFactor before = kernel_factor(ratios);
    ratios[3].logarithm = 50;
    EXPECT_NEAR(kernel_factor(ratios).factor, before.factor, 0.01) << "one outlier moves no median";
}

// 17 kernels as expected and three 0.6 away, of prices that say 0.1: the 19th of 20 lies six deviations out, which are
// 1.645 of what the band needs. The capped squares would say sqrt((4 + 3 x 9) / 24).
TEST(KernelFactor, ReachesAsFarAsNineInTenOfTheKernels) {
    std::vector<KernelRatio> ratios(20, KernelRatio{0, 0.1});
    for (std::size_t i = 0; i < 3; ++i) ratios[5 * i].logarithm = 0.6;
    EXPECT_NEAR(kernel_factor(ratios).scale, std::sqrt((4 + 20 * std::pow(6 / 1.645, 2)) / 24), 1e-12);
}

TEST(KernelFactors, CorrectOtherPricesOfTheirKindAlone) {
    const Factors factors = fit_factors(dense_layers(20, 1.5), card(), "few.csv");
    ASSERT_EQ(factors.fits.size(), 1U);
    EXPECT_EQ(factors.fits[0].factor.kind, "matmul");
    EXPECT_NEAR(factors.fits[0].error_before, 1 - 1 / 1.5, 1e-9);
    EXPECT_LT(factors.fits[0].error_after, 0.02);
    const DeviceClass corrected = with_factors(card(), factors.fits);
    const Price before = price(dense(4096), card()), after = price(dense(4096), corrected);
    EXPECT_NEAR(after.time / before.time, 1.5, 0.02);
    EXPECT_LT(after.error, before.error / 2) << "20 kernels narrow the band";
    EXPECT_THAT(after.source, HasSubstr("(20 kernels, few.csv)"));
    EXPECT_EQ(price(relu(64), corrected).time, price(relu(64), card()).time);
    EXPECT_EQ(factor_of(corrected.model->factors(), "matmul", DataType::f16), nullptr);
}

// Found again from corrected prices, a factor is not a factor of a factor.
TEST(KernelFactors, AreOfPricesThatHaveNone) {
    const DeviceClass once = with_factors(card(), fit_factors(dense_layers(20, 1.5), card(), "few.csv").fits);
    const Factors again = fit_factors(dense_layers(20, 1.5), once, "few.csv");
    EXPECT_NEAR(again.fits[0].factor.factor, once.model->factors().at(0).factor, 1e-12);
    EXPECT_EQ(with_factors(once, again.fits).model->factors().size(), 1U);
}

TEST(KernelFactors, RefuseTooFewAndOtherUnits) {
    EXPECT_THAT(message(dense_layers(2, 1.5)), HasSubstr("few.csv: no kind of operator has 3 kernels of one type"));
    EXPECT_THAT(message(dense_layers(5, 1000)), HasSubstr("is the unit right?"));
    std::vector<KernelSample> both = dense_layers(5, 1.1);
    both.push_back({relu(64), price(relu(64), card()).time});
    EXPECT_THAT(fit_factors(both, card(), "few.csv").too_few, testing::ElementsAre("activation in f32"));
}

TEST(KernelFactors, CountRunsOfOneKernelOnce) {
    std::vector<KernelSample> runs(20, dense_layers(1, 1.5).front());
    EXPECT_THAT(message(runs), HasSubstr("no kind of operator has 3 kernels"));
    runs = dense_layers(3, 1.5);
    const KernelFactor once = fit_factors(runs, card(), "few.csv").fits.at(0).factor;
    for (int i = 0; i < 20; ++i) runs.push_back(runs.front());
    runs.push_back({runs.front().problem, runs.front().time * 50});
    const KernelFactor often = fit_factors(runs, card(), "few.csv").fits.at(0).factor;
    EXPECT_EQ(often.kernels, 3);
    EXPECT_EQ(often.error, once.error);
    EXPECT_EQ(often.factor, once.factor);
}

TEST(BeyondPeak, NamesTheKernelThatNoDeviceOfItsKindRunsSoFast) {
    std::vector<KernelSample> kernels = dense_layers(20, 1);
    EXPECT_EQ(beyond_peak(kernels, card()), "");
    kernels[7].time = flops(kernels[7].problem.op, Pass::forward, kernels[7].problem.batch) / FlopRate{8e12};
    EXPECT_THAT(beyond_peak(kernels, card()), HasSubstr("1 of 20 kernels"));
    EXPECT_THAT(beyond_peak(kernels, card()), HasSubstr("8 times as fast as 1 TFLOP/s in f32"));
}

}  // namespace
}  // namespace rehearse::calibrate
