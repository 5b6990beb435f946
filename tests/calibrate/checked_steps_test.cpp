// SPDX-License-Identifier: Apache-2.0
#include "calibrate/checked_steps.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.hpp"

namespace rehearse::calibrate {
namespace {

using testing::HasSubstr;

CheckedStep step(const char* model, double predicted, double measured, double noise = 0.01) {
    return {model, "data=2", Seconds{predicted}, Seconds{measured}, noise, 10};
}

// Ratios of 1.1 and 1 / 1.1: the root of the mean square of their logarithms is that of 1.1.
TEST(CheckedSteps, SpreadAsMuchAboveAsBelow) {
    const std::vector<CheckedStep> steps{step("a", 1.1, 1, 0.01), step("b", 1, 1.1, 0.03), step("c", 1.1, 1, 0.02)};
    const InSitu in_situ = calibrate::in_situ(steps, "host", "today");
    EXPECT_NEAR(in_situ.bias, 0.1, 1e-12);
    EXPECT_EQ(in_situ.noise, 0.02);
    EXPECT_EQ(in_situ.doubt, "");
    EXPECT_THAT(in_situ.source, HasSubstr("30 samples: a data=2 +10.0 %, b data=2 -9.1 %"));
}

// A host that was busy while its kernels were measured: 54 % below and 86 % above what was measured.
TEST(CheckedSteps, ThatContradictThePricesAreSaidAndHeldByTheBand) {
    const std::vector<CheckedStep> steps{step("lenet5", 0.46, 1), step("resnet32", 1.86, 1), step("mlp", 1.05, 1)};
    const InSitu in_situ = calibrate::in_situ(steps, "host", "today");
    EXPECT_THAT(in_situ.doubt, testing::AllOf(HasSubstr("lenet5 data=2 -54.0 %, resnet32 data=2 +86.0 %)"),
                                              HasSubstr("calibrate again")));
    EXPECT_THAT(in_situ.doubt, Not(HasSubstr("mlp")));
    // [t / (1 + r), t (1 + r)] with r of 1.645 deviations of the noise alone: the worst step is 1 / 0.46 times as long.
    EXPECT_GE(1 + 1.645 * in_situ.noise, 1 / 0.46);
}

TEST(CheckedSteps, OffByLessThanAQuarterAreNoContradiction) {
    EXPECT_EQ(calibrate::in_situ(std::vector{step("a", 1.24, 1)}, "host", "today").doubt, "");
    EXPECT_EQ(calibrate::in_situ(std::vector{step("a", 1, 1.24)}, "host", "today").doubt, "");
    EXPECT_NE(calibrate::in_situ(std::vector{step("a", 1, 1.26)}, "host", "today").doubt, "");
    EXPECT_THROW(calibrate::in_situ({}, "host", "today"), InputError);
}

}  // namespace
}  // namespace rehearse::calibrate
