// SPDX-License-Identifier: Apache-2.0
// General operators of the reference: every gradient against finite differences, and forward by hand where broadcasting
// or an order of axes could be told wrongly. tests/torch holds them to PyTorch.
#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "kernels/general/functions.hpp"
#include "tests/kernels/gradients.hpp"

namespace rehearse::kernels {
namespace {

// The rounding of gradients_test's curve_tolerance, and curves that bend more: the tests below say by how much.
constexpr double tolerance = 4e-3;

// Different from one another, away from kinks at 0, 1, 3 and from poles: {0.3125, 0.4375, ...}, below 1.
void spread_out(std::vector<float>& values, float first = 0.3125F, float step = 0.03125F) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<float>(7 * i % 16);
}

Tensors tensors_of(const Op& op, std::int64_t batch = 2) { return {op, batch, reference::backend()}; }

TEST(GeneralKernels, EveryFunctionHasItsSlope) {
    // Two points: the truncation is h^2 / 6 = 1e-5 times the third derivative, at most 6 / 0.33^4 * 4; rounding, with
    // 12 results of up to 10 and r of up to 4, 12 * 4 * 5e-7 / (2 h) = 2e-3. No step reaches a kink at 1/2 or 3/4.
    constexpr float h = 0.0078125F;
    const Slope slope = [](Tensors& t, float& value) { return (moved(t, value, h) - moved(t, value, -h)) / (2 * h); };
    for (const ElementwiseFunction& row : elementwise_functions()) {
        const auto function = general::function_of(row.name);
        if (!function || !row.sloped) continue;
        const std::size_t operands =
            std::max<std::size_t>(general::arity_of(*function).least, row.name == "mul" ? 3 : 1);
        Elementwise op{std::string{row.name}, {3, 4}, std::vector<Shape>(operands, Shape{3, 4})};
        if (row.name == "clip") op.numbers = {0.5, 0.75};
        if (row.name == "where") op = {"where", {3, 4}, {{3, 4}, {3, 4}}, {}, {{3, 4}}, {}, "cxx"};
        Tensors t = tensors_of(op);
        for (std::size_t k = 0; k < t.src.size(); ++k)
            spread_out(t.src[k], row.name == "acosh" ? 1.5F : 0.328125F + 0.09375F * static_cast<float>(k));
        if (row.name == "where") t.fixed = {{1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1}};
        expect_gradients(t, slope, 2e-2);
        for (auto& tensor : t.src)  // below 0, too, where the function goes on
            for (float& value : tensor) value = -value;
        const bool positive =
            row.name == "log" || row.name == "sqrt" || row.name == "pow" || row.name == "rpow" || row.name == "acosh";
        if (!positive) expect_gradients(t, slope, 2e-2);
    }
}

TEST(GeneralKernels, OperandsBroadcastFromTheirLastAxes) {
    Tensors t = tensors_of(Elementwise{"sub", {2, 3}, {{2, 3}}, {{3}}, {}, {}, "wx"}, 1);
    t.src[0] = {1, 2, 3, 4, 5, 6};
    t.weights = {10, 20, 30};
    t.run(reference::backend(), Pass::forward);
    EXPECT_EQ(t.dst, (std::vector<float>{9, 18, 27, 6, 15, 24}));
}

TEST(GeneralKernels, GradientsOfBroadcastOperandsAreSums) {
    const std::vector<Op> ops{
        Elementwise{"mul", {2, 3, 2}, {{2, 3, 2}, {3, 1}}, {{2, 1, 1}, {2}}, {}, {}},
        Elementwise{"add", {2, 3}, {{2, 3}, {1}}, {{2, 1}}, {}, {4}},
        Elementwise{"div", {2, 2}, {{2, 2}}, {}, {}, {2}},
        Elementwise{"mul", {2, 2}, {{2, 2}}, {}, {}, {3}},
        Elementwise{"mean", {4}, {{4}, {4}}},
        Elementwise{"prelu", {3, 2}, {{3, 2}}, {{3, 1}}},
    };
    for (const Op& op : ops) {
        Tensors t = tensors_of(op);
        for (auto& tensor : t.src)
            for (float& value : tensor) value = value == 0 ? 1 : value;
        expect_gradients(t, slope_of_line, 0);
    }
}

TEST(GeneralKernels, AChosenWeightGetsTheGradientOfEveryPlaceThatTookIt) {
    Tensors t = tensors_of(Elementwise{"add", {2, 3}, {{2, 3}}, {{4}}});
    t.chosen = {{3, 0, 0, 1, 1, 1}};
    expect_gradients(t, slope_of_line, 0);
    EXPECT_EQ(t.diff_weights[2], 0);
}

TEST(GeneralKernels, AMaskHidesAndPassesOnWhatItSays) {
    Tensors t = tensors_of(Elementwise{"where", {2, 3}, {{2, 3}}, {}, {{3}}, {-9}, "cxn"}, 1);
    t.fixed = {{1, 0, 1}};
    t.src[0] = {1, 2, 3, 4, 5, 6};
    t.run(reference::backend(), Pass::forward);
    EXPECT_EQ(t.dst, (std::vector<float>{1, -9, 3, 4, -9, 6}));
    expect_gradients(t, slope_of_line, 0);
}

// A mask that a layer makes chooses between two inputs, or an input and a number: gradients go where it points.
TEST(GeneralKernels, AMaskThatALayerMakesIsReadBackwards) {
    for (const Elementwise& op :
         {Elementwise{"where", {4}, {{4}, {4}, {4}}}, Elementwise{"where", {4}, {{4}, {4}}, {}, {}, {3}}}) {
        Tensors t = tensors_of(op, 1);
        t.src[0] = {1, 0, 0, 1};
        t.run_forward_and_backward(reference::backend());
        EXPECT_EQ(t.diff_src[1], (std::vector<float>{t.diff_dst[0], 0, 0, t.diff_dst[3]}));
        if (op.inputs.size() > 2) {
            EXPECT_EQ(t.diff_src[2], (std::vector<float>{0, t.diff_dst[1], t.diff_dst[2], 0}));
        }
    }
}

TEST(GeneralKernels, SortingPicksTheFirstOfEachLine) {
    Tensors t = tensors_of(Rearrangement{"largest", {{2, 3}}, {2, 2}, {1}}, 1);
    t.src[0] = {5, 7, 6, 1, 3, 3};
    t.run(reference::backend(), Pass::forward);
    EXPECT_EQ(t.dst, (std::vector<float>{7, 6, 3, 3}));
    t.src[0] = {5, 7, 6, 1, 3, 2};  // equal values have no slope
    expect_gradients(
        t, [](Tensors& each, float& value) { return (moved(each, value, 0.25F) - moved(each, value, -0.25F)) * 2; }, 0);
    Tensors at = tensors_of(Rearrangement{"smallestat", {{3, 2}}, {1, 2}, {0}}, 1);
    at.src[0] = {5, 1, 4, 1, 6, 0};
    at.run(reference::backend(), Pass::forward);
    EXPECT_EQ(at.dst, (std::vector<float>{1, 2}));
}

TEST(GeneralKernels, IndicesThatALayerMakesPickAndPut) {
    Tensors t = tensors_of(Rearrangement{"takeeach", {{2, 3}, {2, 2}}, {2, 2}, {1}}, 1);
    t.src = {{1, 2, 3, 4, 5, 6}, {2, 0, -1, -1}};
    t.run_forward_and_backward(reference::backend());
    EXPECT_EQ(t.dst, (std::vector<float>{3, 1, 6, 6}));
    const std::vector<float>& g = t.diff_dst;
    EXPECT_EQ(t.diff_src[0], (std::vector<float>{g[1], 0, g[0], 0, 0, g[2] + g[3]}));
    Tensors u = tensors_of(Rearrangement{"puteach", {{2, 3}, {1, 2}, {1, 2}}, {2, 3}, {0}}, 1);
    u.src = {{1, 2, 3, 4, 5, 6}, {1, 0}, {10, 20}};
    u.run_forward_and_backward(reference::backend());
    EXPECT_EQ(u.dst, (std::vector<float>{1, 20, 3, 10, 5, 6}));
    EXPECT_EQ(u.diff_src[0], (std::vector<float>{u.diff_dst[0], 0, u.diff_dst[2], 0, u.diff_dst[4], u.diff_dst[5]}));
    EXPECT_EQ(u.diff_src[2], (std::vector<float>{u.diff_dst[3], u.diff_dst[1]}));
    u.src[1] = {2, 0};
    EXPECT_THROW(u.run(reference::backend(), Pass::forward), BackendError);
}

// Three nodes of two numbers, four edges and one that is not there: the sums of what PyTorch's index_select and
// index_add_ do, by hand. Each is the other's gradient.
TEST(GeneralKernels, RowsAreTakenAndAddedByTheNumbersOfNodes) {
    Tensors take = tensors_of(Rearrangement{"takerows", {{3, 2}, {5}}, {5, 2}}, 2);
    take.src = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 0, 2, -1, 1, 0, 0, 1, 1, 2}};
    take.run_forward_and_backward(reference::backend());
    EXPECT_EQ(take.dst, (std::vector<float>{5, 6, 1, 2, 5, 6, 0, 0, 3, 4, 7, 8, 7, 8, 9, 10, 9, 10, 11, 12}));
    const std::vector<float>& g = take.diff_dst;
    EXPECT_EQ(take.diff_src[0], (std::vector<float>{g[2], g[3], g[8], g[9], g[0] + g[4], g[1] + g[5], g[10] + g[12],
                                                    g[11] + g[13], g[14] + g[16], g[15] + g[17], g[18], g[19]}));
    EXPECT_EQ(take.diff_src[1], std::vector<float>(10));

    Tensors add = tensors_of(Rearrangement{"addrows", {{5, 2}, {5}}, {3, 2}}, 1);
    add.src = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {2, 0, 2, -1, 1}};
    add.run_forward_and_backward(reference::backend());
    EXPECT_EQ(add.dst, (std::vector<float>{3, 4, 9, 10, 6, 8}));
    const std::vector<float>& h = add.diff_dst;
    EXPECT_EQ(add.diff_src[0], (std::vector<float>{h[4], h[5], h[0], h[1], h[4], h[5], 0, 0, h[2], h[3]}));
}

TEST(GeneralKernels, RowsThatAreNotThereAreRefused) {
    for (const float id : {-2.0F, 3.0F, 0.5F, std::nanf("")}) {
        Tensors t = tensors_of(Rearrangement{"takerows", {{3}, {2}}, {2}}, 1);
        t.src = {{1, 2, 3}, {0, id}};
        EXPECT_THROW(t.run(reference::backend(), Pass::forward), BackendError) << id;
    }
    const Op narrow = Rearrangement{"takerows", {{3, 2}, {5}}, {5, 1}}, few = Rearrangement{"addrows", {{5}, {4}}, {3}},
             alone = Rearrangement{"addrows", {{5}}, {3}};
    for (const Op& op : {narrow, few, alone}) EXPECT_THROW((void)output_shape(op), InputError) << to_string(op);
}

TEST(GeneralKernels, ReductionsHaveTheirSlopes) {
    for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{1}, {0, 2}, {0, 1, 2}}) {
        for (const bool keep : {false, true}) {
            for (const std::string function : {"sum", "max", "min", "l1", "sumsquare", "prod"}) {
                Tensors t = tensors_of(Reduction{function, {2, 3, 2}, axes, keep});
                // Different whole numbers, so that a step of 1/2 changes no order and no sign.
                for (std::size_t i = 0; i < t.src[0].size(); ++i) t.src[0][i] = static_cast<float>(1 + 7 * i % 24);
                if (function == "prod")
                    for (float& value : t.src[0]) value = value > 12 ? 1.0F : 2.0F;
                const bool square = function == "sumsquare";  // central differences of a square are exact
                expect_gradients(t, slope_of_line, square ? 1e-2 : 0);
            }
            for (const std::string function : {"mean", "l2", "logsum", "logsumexp"}) {
                Tensors t = tensors_of(Reduction{function, {2, 3, 2}, axes, keep});
                spread_out(t.src[0], 1.0F);
                expect_gradients(t, slope_of_curve, tolerance);
            }
        }
    }
    for (const std::int64_t axis : {0, 1, 2}) {
        Tensors t = tensors_of(Reduction{"cumsum", {2, 3, 2}, {axis}});
        expect_gradients(t, slope_of_line, 0);
    }
}

TEST(GeneralKernels, ReductionsGiveWhatTheirNamesSay) {
    const auto made = [](const std::string& function) {
        Tensors t = tensors_of(Reduction{function, {2, 3}, {1}}, 1);
        t.src[0] = {3, -4, 1, 2, 5, 5};
        t.run(reference::backend(), Pass::forward);
        return t.dst;
    };
    EXPECT_EQ(made("sum"), (std::vector<float>{0, 12}));
    EXPECT_EQ(made("mean"), (std::vector<float>{0, 4}));
    EXPECT_EQ(made("max"), (std::vector<float>{3, 5}));
    EXPECT_EQ(made("min"), (std::vector<float>{-4, 2}));
    EXPECT_EQ(made("prod"), (std::vector<float>{-12, 50}));
    EXPECT_EQ(made("l1"), (std::vector<float>{8, 12}));
    EXPECT_EQ(made("sumsquare"), (std::vector<float>{26, 54}));
    EXPECT_EQ(made("argmax"), (std::vector<float>{0, 1}));
    EXPECT_EQ(made("argmin"), (std::vector<float>{1, 0}));
    EXPECT_EQ(made("cumsum"), (std::vector<float>{3, -1, 0, 2, 7, 12}));
}

TEST(GeneralKernels, AProductsSlopeIsRightWhereAFactorIsZero) {
    Tensors t = tensors_of(Reduction{"prod", {3}, {0}}, 3);
    t.src[0] = {0, 2, 3, 0, 0, 3, 1, 2, 3};
    expect_gradients(t, slope_of_line, 0);
}

std::vector<float> moved_by(const Rearrangement& op, std::vector<float> values) {
    Tensors t = tensors_of(op, 1);
    t.src[0] = std::move(values);
    t.run(reference::backend(), Pass::forward);
    return t.dst;
}

TEST(GeneralKernels, ValuesGoWhereTheKindSays) {
    const std::vector<float> six{1, 2, 3, 4, 5, 6};
    EXPECT_EQ(moved_by({"transpose", {{2, 3}}, {3, 2}, {1, 0}}, six), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(moved_by({"slice", {{2, 3}}, {2, 2}, {0, 2, 1, -2}}, six), (std::vector<float>{3, 1, 6, 4}));
    EXPECT_EQ(moved_by({"pad", {{2, 3}}, {3, 3}, {1, -1}, 9}, six), (std::vector<float>{9, 9, 9, 2, 3, 9, 5, 6, 9}));
    EXPECT_EQ(moved_by({"reflect", {{1, 3}}, {1, 7}, {0, 2}}, {1, 2, 3}), (std::vector<float>{3, 2, 1, 2, 3, 2, 1}));
    EXPECT_EQ(moved_by({"edge", {{1, 3}}, {1, 6}, {0, 2}}, {1, 2, 3}), (std::vector<float>{1, 1, 1, 2, 3, 3}));
    EXPECT_EQ(moved_by({"wrap", {{3}}, {6}, {2}}, {1, 2, 3}), (std::vector<float>{2, 3, 1, 2, 3, 1}));
    EXPECT_EQ(moved_by({"expand", {{2, 1}}, {2, 2, 2}}, {1, 2}), (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2}));
    EXPECT_EQ(moved_by({"tile", {{1, 2}}, {2, 4}}, {1, 2}), (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));
    EXPECT_EQ(moved_by({"join", {{2, 1}, {2, 2}}, {2, 3}, {1}}, {7, 8}).front(), 7);
}

TEST(GeneralKernels, GradientsGoBackWhereValuesCameFrom) {
    const std::vector<Op> ops{Rearrangement{"transpose", {{2, 3, 2}}, {2, 2, 3}, {2, 0, 1}},
                              Rearrangement{"slice", {{4, 3}}, {2, 3}, {1, 0, 2, 1}},
                              Rearrangement{"pad", {{2, 3}}, {4, 2}, {1, -1}},
                              Rearrangement{"reflect", {{2, 3}}, {4, 5}, {1, 1}},
                              Rearrangement{"expand", {{3, 1}}, {2, 3, 2}},
                              Rearrangement{"tile", {{2, 2}}, {4, 2}},
                              Rearrangement{"join", {{2, 1, 2}, {2, 3, 2}}, {2, 4, 2}, {1}}};
    for (const Op& op : ops) {
        Tensors t = tensors_of(op);
        expect_gradients(t, slope_of_line, 0);
    }
}

TEST(GeneralKernels, WhatIsPickedGetsTheGradientOfAllWhoPickedIt) {
    for (const Op& op :
         {Op{Gather{{3, 2}, {5}, 5}}, Op{Gather{{3, 2}, {5}, 5, true}}, Op{Rearrangement{"pack", {{3}, {3}}, {5}}}}) {
        Tensors t = tensors_of(op);
        t.chosen = {{5, 0, 2, 0, 4}};
        expect_gradients(t, slope_of_line, 0);
    }
    Tensors t = tensors_of(Gather{{3, 2}, {3}, 3, false, true});
    t.chosen = {{4, 0, 2}};
    expect_gradients(t, slope_of_line, 0);
    Tensors beside = tensors_of(Parameter{{2, 2}});
    expect_gradients(beside, slope_of_line, 0);
}

TEST(GeneralKernels, StacksOfProductsAreWhatTheirMatricesMake) {
    for (const BatchedMatMul& op : {BatchedMatMul{{2, 3, 4}, {2, 4, 5}}, BatchedMatMul{{3, 4}, {4, 2}},
                                    BatchedMatMul{{2, 1, 2, 3}, {3, 3, 2}}, BatchedMatMul{{2, 3}, {2, 3, 2}, 1},
                                    BatchedMatMul{{2, 2, 3}, {2, 3, 2}, 2}, BatchedMatMul{{2, 3}, {3, 2}, 2}}) {
        Tensors t = tensors_of(op);
        expect_gradients(t, slope_of_line, 0);
    }
    Tensors t = tensors_of(BatchedMatMul{{1, 2, 2}, {2, 2, 1}}, 1);
    t.src = {{1, 2, 3, 4}, {1, 1, 2, 0}};
    t.run(reference::backend(), Pass::forward);
    EXPECT_EQ(t.dst, (std::vector<float>{3, 7, 2, 6}));
}

TEST(GeneralKernels, NormalizationMatchesDifferences) {
    for (const Normalization& op :
         {Normalization{{4, 8}, 4, 8, 8}, Normalization{{4, 8}, 2, 4, 4, 8}, Normalization{{4, 8}, 4, 8, 0, 1, false},
          Normalization{{2, 16}, 2, 0, 0, 1, true, 0.5}}) {
        Tensors t = tensors_of(op);
        expect_gradients(t, slope_of_curve, tolerance);
    }
}

TEST(GeneralKernels, SoftmaxAlongAnyAxisMatchesDifferences) {
    for (const std::int64_t axis : {0, 1, 2}) {
        for (const bool log : {false, true}) {
            Tensors t = tensors_of(SoftmaxAlong{{2, 3, 4}, axis, log});
            expect_gradients(t, slope_of_curve, tolerance);
            if (log) continue;
            float sum = 0;
            t.run(reference::backend(), Pass::forward);
            std::int64_t inner = 1;
            for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < 3; ++d) inner *= Shape{2, 3, 4}[d];
            for (std::int64_t i = 0; i < Shape{2, 3, 4}[static_cast<std::size_t>(axis)]; ++i)
                sum += t.dst[static_cast<std::size_t>(i * inner)];
            EXPECT_NEAR(sum, 1, 1e-6);
        }
    }
}

TEST(GeneralKernels, RecurrentLayersMatchDifferencesThroughTime) {
    for (const std::string cell : {"rnn", "lstm", "gru"}) {
        for (const bool variant : {false, true}) {
            Recurrent op{cell, 3, 2, 2, variant ? 2 : 1, !variant};
            op.reset_after = !variant;
            op.reverse = cell == "lstm" && !variant;
            Tensors t = tensors_of(op);
            // Weights of at most 1/2 and inputs of at most 1: what a gate's sum moves by, over three steps.
            for (float& value : t.weights) value /= 8;
            for (float& value : t.src[0]) value /= 4;
            expect_gradients(t, slope_of_curve, tolerance);
        }
    }
    Recurrent cut{"rnn", 2, 2, 2, 1, true};
    cut.relu = true;
    Tensors t = tensors_of(cut, 1);
    for (float& value : t.weights) value = std::abs(value) + 1;  // all sums above 0: no kink, and a polynomial
    for (float& value : t.src[0]) value = 1;
    expect_gradients(t, slope_of_curve, tolerance * 100);
}

TEST(GeneralKernels, AReversedLayerReadsFromTheEnd) {
    Recurrent op{"rnn", 3, 1, 1, 1, false};
    op.relu = true;
    op.reverse = true;
    Tensors t = tensors_of(op, 1);
    t.src[0] = {1, 2, 3};
    t.weights = {1, 10};  // h = max(0, x + 10 h of the step after)
    t.run(reference::backend(), Pass::forward);
    EXPECT_EQ(t.dst, (std::vector<float>{321, 32, 3}));
}

TEST(GeneralKernels, WhatCannotBeRunSaysWhy) {
    const auto reason = [](const Op& op) { return reference::backend().supports({op, Pass::forward, 1}).reason; };
    EXPECT_NE(reason(Elementwise{"random", {2}, {{2}}}).find("random"), std::string::npos);
    EXPECT_NE(reason(Elementwise{"sub", {2}, {{2}}}).find("operands"), std::string::npos);
    EXPECT_NE(reason(Rearrangement{"slice", {{4}}, {2}}).find("step"), std::string::npos);
    EXPECT_NE(reason(Elementwise{"add", {4, 3}, {{4, 3}, {4, 2}}}).find("does not broadcast"), std::string::npos);
    EXPECT_NE(reason(Reduction{"topk", {4}, {0}}), "");
}

}  // namespace
}  // namespace rehearse::kernels
