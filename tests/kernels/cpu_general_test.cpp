// SPDX-License-Identifier: Apache-2.0
// General operators on all cores held to the reference's loops: every pass, on each SIMD target, on one and on three
// threads.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/general/arithmetic.hpp"
#include "kernels/cpu/general/curves.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/cpu_convolutions.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

struct Case {
    Op op;
    std::vector<std::vector<float>> fixed{};
    std::vector<std::vector<std::int32_t>> chosen{};
};

std::vector<Case> cases() {
    std::vector<Case> all{
        {Elementwise{"mul", {2, 3, 4}, {{2, 3, 4}, {3, 1}}, {{2, 1, 1}, {4}}}},
        {Elementwise{"add", {3, 4}, {{3, 4}, {3, 4}}}},
        {Elementwise{"sub", {3, 4}, {{3, 4}}, {{4}}, {}, {}, "wx"}},
        {Elementwise{"silu", {5, 7}, {{5, 7}}}},
        {Elementwise{"clip", {9}, {{9}}, {}, {}, {-1, 2}}},
        {Elementwise{"where", {2, 3}, {{2, 3}}, {}, {{3}}, {-9}, "cxn"}, {{1, 0, 1}}},
        {Elementwise{"add", {2, 3}, {{2, 3}}, {{3}}}, {}, {{2, 0, 0, 1, 1, 1}}},
        {Elementwise{"copy", {3}, {}, {}, {{3}}}, {{4, 5, 6}}},
        {Elementwise{"mul", {2, 3}, {{2, 3}}, {}, {{3}}}, {{2, 3, 4}}},
        {Elementwise{"div", {2, 3}, {{2, 3}}, {}, {{3}}}, {{1, 2, 4}}},
        {Rearrangement{"transpose", {{2, 3, 4}}, {4, 2, 3}, {2, 0, 1}}},
        {Rearrangement{"transpose", {{2, 3, 4}}, {3, 2, 4}, {1, 0, 2}}},
        {Rearrangement{"slice", {{4, 6}}, {2, 3}, {1, 1, 2, 2}}},
        {Rearrangement{"pad", {{2, 3}}, {4, 6}, {1, 2}, 3}},
        {Rearrangement{"reflect", {{3, 4}}, {5, 6}, {1, 1}}},
        {Rearrangement{"expand", {{3, 1, 2}}, {3, 4, 2}}},
        {Rearrangement{"join", {{2, 1, 2}, {2, 3, 2}}, {2, 4, 2}, {1}}},
        {Rearrangement{"pack", {{3}, {3}}, {4}}, {}, {{5, 0, 2, 0}}},
        {Gather{{3, 2}, {4}, 4}, {}, {{5, 0, 5, 4}}},
        {Gather{{3, 2}, {4}, 4, true}, {}, {{5, 0, 5, 4}}},
        {Parameter{{2, 3}}},
        {BatchedMatMul{{2, 3, 4}, {2, 4, 5}}},
        {BatchedMatMul{{2, 1, 2, 3}, {3, 3, 2}}},
        {BatchedMatMul{{2, 3}, {2, 3, 2}, 1}},
        {BatchedMatMul{{2, 2, 3}, {3, 2}, 2}},
        {Normalization{{4, 8}, 4, 8, 8}},
        {Normalization{{4, 8}, 2, 4, 4, 8}},
        {Normalization{{4, 8}, 4, 8, 0, 1, false}},
        {SoftmaxAlong{{2, 5, 3}, 1}},
        {SoftmaxAlong{{2, 5}, 1, true}},
        // Sets and lines of whole vectors and some more: weights of each element, of runs of 37, of runs of 3; none.
        {Normalization{{3, 83}, 3, 83, 83}},
        {Normalization{{2, 100}, 2, 100, 0, 1, false}},
        {Normalization{{6, 37}, 3, 6, 6, 37}},
        {Normalization{{20, 3}, 2, 20, 20, 3}},
        {Normalization{{4, 40}, 2, 40, 40}},
        {Normalization{{3, 50}, 3, 0, 1}},
        {SoftmaxAlong{{3, 83}, 1}},
        {SoftmaxAlong{{3, 83}, 1, true}},
        {SoftmaxAlong{{2, 5, 43}, 1}},
        {SoftmaxAlong{{2, 5, 43}, 1, true}},
        {SoftmaxAlong{{7, 43}, 0}},
    };
    // Rows of whole vectors and some more: each to its own, a weight for all of a row, for all rows, a number for all.
    for (const std::string function : {"add", "sub", "mul", "div", "rsub"}) {
        all.push_back({Elementwise{function, {3, 83}, {{3, 83}, {3, 83}}}});
        all.push_back({Elementwise{function, {3, 83}, {{3, 83}, {3, 1}}}});
        all.push_back({Elementwise{function, {3, 83}, {{3, 83}, {1, 83}}}});
        all.push_back({Elementwise{function, {3, 1100}, {{3, 1100}}, {{3, 1}}}});
        all.push_back({Elementwise{function, {3, 1100}, {{3, 1100}}, {{1100}}}});
        all.push_back({Elementwise{function, {3, 83}, {{3, 83}}, {}, {}, {2}}});
    }
    all.push_back({Elementwise{"mul", {3, 83}, {{3, 83}, {3, 83}, {3, 1}}}});
    all.push_back({Elementwise{"add", {3, 83}, {{3, 83}, {3, 83}, {3, 83}}}});
    for (const std::string function : {"neg", "abs", "square", "relu", "leakyrelu", "hardsigmoid", "hardswish", "copy"})
        all.push_back({Elementwise{function, {2, 83}, {{2, 83}}}});
    all.push_back({Elementwise{"clip", {2, 83}, {{2, 83}}, {}, {}, {0, 6}}});
    all.push_back({Elementwise{"prelu", {2, 83}, {{2, 83}}, {{2, 1}}}});
    // Transpositions of the last dimension: matrices beside each other and apart, more rows than a block of them.
    all.push_back({Rearrangement{"transpose", {{5, 7, 11}}, {7, 11, 5}, {1, 2, 0}}});
    all.push_back({Rearrangement{"transpose", {{3, 5, 83}}, {3, 83, 5}, {0, 2, 1}}});
    all.push_back({Rearrangement{"transpose", {{83, 3, 5}}, {5, 3, 83}, {2, 1, 0}}});
    all.push_back({Rearrangement{"transpose", {{2, 3, 4, 5}}, {4, 2, 5, 3}, {2, 0, 3, 1}}});
    all.push_back({Rearrangement{"transpose", {{130, 6}}, {6, 130}, {1, 0}}});
    for (const std::string bends :
         {"exp", "sigmoid", "tanh", "softplus", "elu", "selu", "celu", "silu", "quickgelu", "gelutanh", "mish"})
        all.push_back({Elementwise{bends, {5, 7}, {{5, 7}}}});
    all.push_back({Elementwise{"elu", {37}, {{37}}, {}, {}, {0.5}}});
    all.push_back({Elementwise{"celu", {37}, {{37}}, {}, {}, {2}}});
    all.push_back({Elementwise{"elu", {3, 37}, {{37}}}});  // the same row three times
    // The last dimension alone, all, the first, in the middle, and two of three that do not lie side by side.
    for (const std::string function : {"sum", "mean", "max", "min", "l1", "l2", "sumsquare", "logsum", "logsumexp"}) {
        const Shape shape{3, 5, 37};
        for (const std::vector<std::int64_t>& axes :
             std::vector<std::vector<std::int64_t>>{{2}, {0, 1, 2}, {0}, {1}, {0, 2}})
            all.push_back({Reduction{function, shape, axes, axes.size() == 1}});
        all.push_back({Reduction{function, {1, 4, 1}, {0}}});
    }
    for (const std::string cell : {"rnn", "lstm", "gru"}) {
        for (const int variant : {0, 1, 2}) {
            Recurrent op{cell, 4, 3, 5, variant == 2 ? 2 : 1, variant != 1};
            op.reset_after = variant != 1;
            op.reverse = variant == 1;
            op.relu = cell == "rnn" && variant == 0;
            all.push_back({op});
        }
    }
    return all;
}

// Both sum a hundred products of numbers up to 8 at most, the reference in double: 100 * 64 * 2^-24 = 4e-4, and twice
// that behind a recurrent layer's steps.
void expect_near(const std::vector<float>& ours, const std::vector<float>& right, const char* what) {
    ASSERT_EQ(ours.size(), right.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
        ASSERT_NEAR(ours[i], right[i], 1e-4 * (1 + std::abs(right[i]))) << what << " at " << i;
}

class CpuGeneral : public OnEachTarget {};

INSTANTIATE_TEST_SUITE_P(EachTarget, CpuGeneral,
                         testing::Combine(testing::ValuesIn(simd_targets()), testing::Values(1, 3)), target_name);

TEST_P(CpuGeneral, EveryPassIsTheReferences) {
    for (const Case& each : cases()) {
        SCOPED_TRACE(to_string(each.op));
        Tensors right{each.op, 5, reference::backend()}, ours{each.op, 5, cpu::general()};
        for (Tensors* t : {&right, &ours}) {
            t->fixed = each.fixed;
            t->chosen = each.chosen;
            for (auto& tensor : t->src)
                for (float& value : tensor) value /= 4;
            for (float& value : t->weights) value /= 4;
            const auto* function = std::get_if<Elementwise>(&each.op);
            if (function != nullptr && function->function == "div")  // by what is not 0
                for (auto* numbers : {&t->src.back(), &t->weights})
                    for (float& value : *numbers) value = std::abs(value) + 1;
            const auto* reduction = std::get_if<Reduction>(&each.op);
            if (reduction != nullptr && reduction->function == "logsum")  // of sums above 0
                for (float& value : t->src[0]) value = std::abs(value) + 1;
        }
        right.run_forward_and_backward(reference::backend());
        ours.run_forward_and_backward(cpu::general());
        expect_near(ours.dst, right.dst, "dst");
        if (has_pass(each.op, Pass::backward_data)) {
            for (std::size_t k = 0; k < right.diff_src.size(); ++k)
                expect_near(ours.diff_src[k], right.diff_src[k], "diff_src");
        }
        if (!right.weights.empty()) expect_near(ours.diff_weights, right.diff_weights, "diff_weights");
    }
}

// What overflows, and what is not a number, as the standard library has it; a slope of 0 hides what comes in.
TEST_P(CpuGeneral, CurvesKeepWhatIsNoNumberAndWhatIsInfinite) {
    const float none = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
    const std::vector<float> x{none, 200, -200, infinite, -infinite, 0, 1e-5F, -1e-5F, 12, -12, 88, -88, 0.5F};
    std::vector<float> y(x.size());
    cpu::along_curve({general::Function::exp}, x.data(), std::ssize(x), y.data());
    EXPECT_TRUE(std::isnan(y[0]));
    for (std::size_t i = 1; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], std::exp(x[i])) << x[i];
    cpu::along_curve({general::Function::tanh}, x.data(), std::ssize(x), y.data());
    EXPECT_TRUE(std::isnan(y[0]));
    for (std::size_t i = 1; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], std::tanh(x[i])) << x[i];
    cpu::along_curve({general::Function::elu}, x.data(), std::ssize(x), y.data());
    EXPECT_TRUE(std::isnan(y[0]));
    for (std::size_t i = 1; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], x[i] > 0 ? x[i] : std::expm1(x[i])) << x[i];
    cpu::along_curve({general::Function::sigmoid}, x.data(), std::ssize(x), y.data());
    EXPECT_TRUE(std::isnan(y[0]));
    for (std::size_t i = 1; i < x.size(); ++i) EXPECT_NEAR(y[i], 1 / (1 + std::exp(-x[i])), 1e-6) << x[i];
    const std::vector<float> into(x.size(), infinite);
    cpu::slopes_of_curve({general::Function::exp}, x.data(), into.data(), std::ssize(x), y.data());
    EXPECT_EQ(y[4], 0);  // e to minus infinity
}

// Comparisons that what is not a number fails leave it as it is, as the standard library's do; a slope of 0 hides what
// comes in.
TEST_P(CpuGeneral, ArithmeticKeepsWhatIsNoNumber) {
    const float none = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
    std::vector<float> x(37, 1.5F), y(37), slopes(37), into(37, 2.0F);
    x[0] = x[36] = none, x[1] = infinite, x[2] = -infinite, x[3] = -1, x[35] = 7;
    into[3] = infinite;
    const float low = 0, high = 6;
    const cpu::ArithmeticRow clip{{x.data(), &low, &high}, {1, 0, 0}, 3, 37};
    cpu::along_arithmetic(general::Function::clip, clip, y.data());
    cpu::slopes_of_arithmetic(general::Function::clip, clip, 0, into.data(), slopes.data());
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[36]));
    EXPECT_EQ((std::vector{y[1], y[2], y[3], y[4], y[35]}), (std::vector{6.0F, 0.0F, 0.0F, 1.5F, 6.0F}));
    EXPECT_EQ((std::vector{slopes[0], slopes[1], slopes[3], slopes[4], slopes[35]}),
              (std::vector{0.0F, 0.0F, 0.0F, 2.0F, 0.0F}));
}

// A line with something that is no number has no other results, and lines beside it do not notice; a score of minus
// infinity, as a mask has it, takes no part. Of equal scores each probability is one of their number.
TEST_P(CpuGeneral, SoftmaxKeepsWhatIsNoNumberAndLeavesOutWhatIsMasked) {
    const float none = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
    for (const std::int64_t axis : {0, 1}) {
        SCOPED_TRACE(axis);
        constexpr std::int64_t along = 41, lines = 20;
        const SoftmaxAlong op{axis == 1 ? Shape{lines, along} : Shape{along, lines}, axis};
        const auto place = [&](std::int64_t line, std::int64_t i) {
            return static_cast<std::size_t>(axis == 1 ? line * along + i : i * lines + line);
        };
        Tensors t{op, 1, cpu::general()};
        std::ranges::fill(t.src[0], 3.0F);
        t.src[0][place(0, along - 1)] = none;
        for (std::int64_t i = 0; i < 9; ++i) t.src[0][place(lines - 1, 3 * i)] = -infinite;
        t.run_forward_and_backward(cpu::general());
        for (std::int64_t i = 0; i < along; ++i) {
            EXPECT_TRUE(std::isnan(t.dst[place(0, i)]));
            EXPECT_FLOAT_EQ(t.dst[place(1, i)], 1.0F / 41);
            const bool masked = i % 3 == 0 && i < 27;
            EXPECT_FLOAT_EQ(t.dst[place(lines - 1, i)], masked ? 0.0F : 1.0F / 32);
        }
    }
}

TEST_P(CpuGeneral, OtherOperatorsAreRefusedByName) {
    EXPECT_NE(cpu::general().supports({Reduction{"cumsum", {4}, {0}}, Pass::forward, 1}).reason.find("by cumsum"),
              std::string::npos);
}

}  // namespace
}  // namespace rehearse::kernels
