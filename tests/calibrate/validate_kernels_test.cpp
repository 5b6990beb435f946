// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_kernels.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "calibrate/learn.hpp"

namespace rehearse::calibrate {
namespace {

Problem conv(std::int64_t channels, std::int64_t batch, Pass pass) {
    return {Conv{channels, 16, 16, 64, Window{3, 3, 1, 1, 1, 1, 1, 1}}, pass, batch, DataType::f32};
}

// 24 kernels that take twice their compute bound.
MeasuredKernels steady() {
    const DeviceSheet sheet{FlopRate{1e13}, Bandwidth{1e12}, 8, 1, Bytes{4}};
    MeasuredKernels kernels{"conv2d", DataType::f32, sheet, {}, first_experts("conv2d"), 1, "a toy"};
    for (const std::int64_t channels : {32, 64, 128, 256}) {
        for (const std::int64_t batch : {8, 16}) {
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                const Problem problem = conv(channels, batch, pass);
                kernels.samples.push_back({problem, kernel_point(problem, sheet)->bounds.compute * 2});
            }
        }
    }
    return kernels;
}

TEST(CrossValidation, LeavesOutAllThatItSays) {
    const Problem a = conv(64, 8, Pass::forward), b = conv(64, 8, Pass::backward_data), c = conv(64, 16, Pass::forward);
    EXPECT_EQ(held_out_with(a, Leave::shape), held_out_with(b, Leave::shape));
    EXPECT_NE(held_out_with(a, Leave::shape), held_out_with(c, Leave::shape));
    EXPECT_EQ(held_out_with(a, Leave::family), held_out_with(c, Leave::family));
    // {m, n, k} = {512, 32, 256} forward, and the same product with its left operand transposed.
    const Problem forward{MatMul{1, 512, 256, false}, Pass::forward, 32},
        back{MatMul{1, 256, 512, false}, Pass::backward_data, 32};
    EXPECT_EQ(held_out_with(forward, Leave::shape), held_out_with(back, Leave::shape));
}

// A measurement that is a hundred times off must not be seen by the price of its own shape, on any pass.
TEST(CrossValidation, DoesNotSeeTheShapeThatItPrices) {
    for (const Leave leave : {Leave::shape, Leave::family}) {
        MeasuredKernels kernels = steady();
        const std::vector<Judged> before = cross_validate(kernels, leave);
        const std::size_t planted = 7;
        kernels.samples[planted].time = kernels.samples[planted].time * 100;
        const std::vector<Judged> after = cross_validate(kernels, leave);
        const std::string group = held_out_with(kernels.samples[planted].problem, leave);
        double others = 0;
        for (std::size_t i = 0; i < before.size(); ++i) {
            const double moved = std::abs(after[i].predicted.log_time - before[i].predicted.log_time);
            if (held_out_with(kernels.samples[i].problem, leave) == group) {
                EXPECT_NEAR(moved, 0, 1e-9) << i;  // the matrix is the same; log 100 = 4.6 is rounded to 1e-15
            } else {
                others = std::max(others, moved);
            }
        }
        EXPECT_GT(others, 0.1);  // those that may see it do
    }
}

Judged judged(double measured, double predicted, double deviation) {
    return {conv(64, 8, Pass::forward), Seconds{measured}, {std::log(predicted), deviation, false}};
}

TEST(Errors, AreRelativeToWhatWasMeasured) {
    EXPECT_NEAR(error_of(judged(2, 3, 0.1)), 0.5, 1e-15);
    EXPECT_NEAR(error_of(judged(4, 3, 0.1)), 0.25, 1e-15);
    // |log(2 / 3)| = 0.405 is 1.645 deviations of 0.2465.
    EXPECT_TRUE(in_band(judged(2, 3, 0.247)));
    EXPECT_FALSE(in_band(judged(2, 3, 0.246)));
    const std::vector<Judged> rows{judged(1, 1, 0.1), judged(1, 1.1, 0.1), judged(1, 1.2, 0.1), judged(1, 2, 0.1),
                                   judged(1, 3, 0.1)};
    const ErrorSummary summary = summarize(rows);
    EXPECT_EQ(summary.rows, 5U);
    EXPECT_NEAR(summary.median, 0.2, 1e-12);
    EXPECT_NEAR(summary.p90, 1.6, 1e-12);      // rank 3.6 of 0, 0.1, 0.2, 1, 2
    EXPECT_NEAR(summary.in_band, 0.4, 1e-12);  // log 1.1 = 0.095, log 1.2 = 0.182 > 0.1645
    // Rank 3.6 of the scores log(ratio) / 0.1: between log 2 and log 3 over 0.1.
    EXPECT_NEAR(band_of(rows), (std::log(2) + 0.6 * std::log(1.5)) / 0.1 / 1.645, 1e-12);
}

TEST(Judging, PricesOtherShapesWithTheShareThatWasLearned) {
    const MeasuredKernels kernels = steady();
    const KnownPrices known{kernels};
    EXPECT_TRUE(known.problems.contains(to_string(kernels.samples[0].problem)));
    const Problem other = conv(96, 12, Pass::forward);
    EXPECT_FALSE(known.problems.contains(to_string(other)));
    const KernelSample sample{other, kernel_point(other, kernels.sheet)->bounds.compute * 2};
    const std::vector<Judged> rows = judge(known.prices, {&sample, 1});
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_LT(error_of(rows[0]), 0.1);  // between constant values; the priors' pull is below their noise of 5 % twice
}

}  // namespace
}  // namespace rehearse::calibrate
