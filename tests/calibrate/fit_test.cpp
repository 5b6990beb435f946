// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "core/error.hpp"

namespace rehearse::calibrate {
namespace {

using namespace literals;
using testing::SizeIs;

TEST(Median, LeavesOneDisturbedValueOut) {
    EXPECT_EQ(median({1, 2, 300}), 2);
    EXPECT_EQ(median({4, 1, 3, 200}), 3.5);
    EXPECT_EQ(median({7}), 7);
}

// Of 19 distances the 18th (0.9 x 20), of nine the ninth, of eight none: 1.645 deviations are the 90 % band's reach.
TEST(ConformalDeviation, ReachesAsFarAsNineInTen) {
    std::vector<double> distances;
    for (int i = 19; i > 0; --i) distances.push_back(i);
    EXPECT_DOUBLE_EQ(conformal_deviation(distances), 18 / 1.645);
    EXPECT_DOUBLE_EQ(conformal_deviation({1, 1, 1, 1, 5, 1, 1, 1, 1}), 5 / 1.645);
    EXPECT_EQ(conformal_deviation({1, 2, 3, 4, 5, 6, 7, 8}), 0);
}

TEST(RobustDeviation, OfATextbookCase) {
    // |x - 2| of {1, 1, 2, 2, 4, 6, 9} is {1, 1, 0, 0, 2, 4, 7}: median 1.
    EXPECT_DOUBLE_EQ(robust_deviation({1, 1, 2, 2, 4, 6, 9}), 1.4826);
    EXPECT_EQ(robust_deviation({5}), 0);
}

DeviceClass device() {
    DeviceClass core;
    core.peak[DataType::f32] = {100_GFLOPS, "planted"};
    core.memory_bandwidth = {10_GBps, "planted"};
    core.launch = {10_us, "planted"};
    return core;
}

// A square product of 256 with a batch of 256 is bound by its 2 * 256^3 operations: 335.5 us at 100 GFLOP/s.
Sample product(double fraction) {
    const MatMul op{.m = 1, .n = 256, .k = 256, .bias = false};
    return {{op, Pass::forward, 256}, "planted", "", Seconds{335.54432e-6 / fraction + 10e-6}, 0, 7};
}

// A ReLU of 2^20 elements reads and writes 4 MiB: 838.9 us at 10 GB/s.
Sample relu(Pass pass, double fraction) {
    const double arrays = pass == Pass::forward ? 2 : 3;  // backward reads the input as well
    const double seconds = arrays * 4 * 1048576 / 10e9;
    const Activation op{Nonlinearity::relu, {1048576}};
    return {{op, pass, 1}, "planted", "", Seconds{seconds / fraction + 10e-6}, 0, 7};
}

const EfficiencyFit& find(const std::vector<EfficiencyFit>& fits, std::string_view kind, std::optional<Pass> pass) {
    for (const EfficiencyFit& fit : fits) {
        if (fit.row.kind == kind && fit.row.pass == pass) return fit;
    }
    throw std::runtime_error("no such row");
}

TEST(Efficiencies, AreTheSharesOfTheRooflineThatWerePlanted) {
    std::vector<Sample> samples;
    for (int i = 0; i < 5; ++i) {
        samples.push_back(product(0.8));
        samples.push_back(relu(Pass::forward, 0.5));
        samples.push_back(relu(Pass::backward_data, 0.25));
    }
    const auto fits = fit_efficiencies(samples, device());
    EXPECT_THAT(fits, SizeIs(1 + 2 + 3));  // "*", two kinds, three kinds and passes
    EXPECT_NEAR(find(fits, "matmul", Pass::forward).row.fraction, 0.8, 1e-9);
    EXPECT_NEAR(find(fits, "activation", Pass::forward).row.fraction, 0.5, 1e-9);
    EXPECT_NEAR(find(fits, "activation", Pass::backward_data).row.fraction, 0.25, 1e-9);
    EXPECT_NEAR(find(fits, "*", std::nullopt).row.fraction, 0.5, 1e-9);
    EXPECT_NEAR(find(fits, "matmul", Pass::forward).row.error, 0, 1e-9);
    EXPECT_EQ(find(fits, "activation", std::nullopt).samples, 10);
}

TEST(Efficiencies, CarryTheSpreadBetweenProblemsAsTheirError) {
    std::mt19937 engine(7);
    std::normal_distribution<double> normal(0, 1);
    std::vector<Sample> samples;
    for (int i = 0; i < 400; ++i) samples.push_back(product(0.5 * std::exp(0.2 * normal(engine))));
    const EfficiencyFit fit = find(fit_efficiencies(samples, device()), "matmul", Pass::forward);
    // A median of 400 is known to 1.25 * 0.2 / sqrt(400) = 1.25 %, their deviation to 1.17 / sqrt(400) = 5.8 %.
    EXPECT_NEAR(fit.row.fraction / 0.5, 1, 4 * 0.0125);
    EXPECT_NEAR(fit.row.error / 0.2, 1, 4 * 0.058);
}

TEST(Efficiencies, OfOneSampleTakeTheErrorOfTheWiderRow) {
    const auto fits = fit_efficiencies(std::vector<Sample>{product(0.8)}, device());
    EXPECT_EQ(find(fits, "*", std::nullopt).row.error, 0.5);  // one sample: as unsure as a bare roofline
    EXPECT_EQ(find(fits, "matmul", Pass::forward).row.error, 0.5);
}

TEST(Efficiencies, KeepATenthOfATimeThatIsShorterThanTheLaunch) {
    Sample tiny = relu(Pass::forward, 1);
    tiny.problem.op = Activation{Nonlinearity::relu, {1024}};
    tiny.median = 5_us;  // less than the launch of 10 us
    const EfficiencyFit fit = find(fit_efficiencies(std::vector<Sample>{tiny}, device()), "*", std::nullopt);
    EXPECT_NEAR(fit.row.fraction, 0.8192e-6 / 0.5e-6, 1e-9);
}

TEST(Efficiencies, OfNoSamplesAreNone) { EXPECT_THAT(fit_efficiencies({}, device()), SizeIs(0)); }

}  // namespace
}  // namespace rehearse::calibrate
