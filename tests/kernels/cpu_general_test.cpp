// SPDX-License-Identifier: Apache-2.0
// General operators on all cores held to the reference's loops: every pass, on one and on three threads.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/general/curves.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/reference/backend.hpp"
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
    };
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

TEST(CpuGeneral, EveryPassIsTheReferences) {
    for (const int threads : {1, 3}) {
        omp_set_num_threads(threads);
        for (const Case& each : cases()) {
            SCOPED_TRACE(to_string(each.op));
            Tensors right{each.op, 5, reference::backend()}, ours{each.op, 5, cpu::general()};
            for (Tensors* t : {&right, &ours}) {
                t->fixed = each.fixed;
                t->chosen = each.chosen;
                for (auto& tensor : t->src)
                    for (float& value : tensor) value /= 4;
                for (float& value : t->weights) value /= 4;
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
}

// What overflows, and what is not a number, as the standard library has it; a slope of 0 hides what comes in.
TEST(CpuGeneral, CurvesKeepWhatIsNoNumberAndWhatIsInfinite) {
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

TEST(CpuGeneral, OtherOperatorsAreRefusedByName) {
    EXPECT_NE(cpu::general().supports({Reduction{"cumsum", {4}, {0}}, Pass::forward, 1}).reason.find("by cumsum"),
              std::string::npos);
}

}  // namespace
}  // namespace rehearse::kernels
