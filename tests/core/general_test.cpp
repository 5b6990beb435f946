// SPDX-License-Identifier: Apache-2.0
// Counts of the general operators, each by hand.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/network.hpp"

namespace rehearse {
namespace {

double work(const Op& op, Pass pass) { return flops(op, pass, 2).value; }
double bytes(const Op& op, Pass pass) { return bytes_moved(op, pass, DataType::f32, 2).value; }

TEST(GeneralOperators, AProductWithAnOperandThatBroadcastsReadsItOnce) {
    const Op op = Elementwise{"mul", {4, 6, 5}, {{4, 6, 5}, {4, 1, 1}}};
    EXPECT_EQ(work(op, Pass::forward), 2 * 120);
    EXPECT_EQ(bytes(op, Pass::forward), 4 * 2 * (120 + 4 + 120));
    // Two products, and the sum over what was spread; both operands are read again, both gradients written.
    EXPECT_EQ(work(op, Pass::backward_data), 2 * (2 * 120 + 120));
    EXPECT_EQ(bytes(op, Pass::backward_data), 4 * 2 * (2 * 124 + 120));
    EXPECT_FALSE(has_pass(op, Pass::backward_weights));
}

TEST(GeneralOperators, ATrainedOperandIsReadOnceForAllSamples) {
    const Op op = Elementwise{"add", {5, 8}, {{5, 8}}, {{5, 8}}};
    EXPECT_EQ(parameters(op), 40);
    EXPECT_EQ(bytes(op, Pass::forward), 4 * (2 * (40 + 40) + 40));
    EXPECT_EQ(bytes(op, Pass::backward_data), 4 * 2 * (40 + 40));     // a copy
    EXPECT_EQ(bytes(op, Pass::backward_weights), 4 * (2 * 40 + 40));  // a sum over the samples
}

// What a fixed number or tensor multiplies or divides: the gradient of the one activation is scaled by it alone.
TEST(GeneralOperators, AScaledActivationIsNotReadAgain) {
    const std::vector<Elementwise> scaled{{.function = "mul", .shape = {5, 8}, .inputs = {{5, 8}}, .numbers = {3}},
                                          {.function = "div", .shape = {5, 8}, .inputs = {{5, 8}}, .numbers = {3}},
                                          {.function = "mul", .shape = {5, 8}, .inputs = {{5, 8}}, .constants = {{8}}}};
    for (const Elementwise& op : scaled) {
        const double fixed = op.constants.empty() ? 0 : 8;
        EXPECT_EQ(work(op, Pass::backward_data), 2 * 40);
        EXPECT_EQ(bytes(op, Pass::forward), 4 * (2 * (40 + 40) + fixed));
        EXPECT_EQ(bytes(op, Pass::backward_data), 4 * (2 * (40 + 40) + fixed));
        EXPECT_FALSE(reads(op, Pass::backward_data).src);
    }
    const std::vector<Elementwise> others{
        {.function = "div", .shape = {8}, .inputs = {{8}}, .numbers = {3}, .order = "nx"},
        {.function = "rdiv", .shape = {8}, .inputs = {{8}}, .numbers = {3}},
        {.function = "mul", .shape = {8}, .inputs = {{8}, {8}}, .numbers = {3}},
        {.function = "mul", .shape = {8}, .inputs = {{8}}, .weights = {{8}}}};
    for (const Elementwise& op : others) EXPECT_TRUE(reads(op, Pass::backward_data).src) << op.function;
}

// 12 edges, 6 numbers, 7 nodes: sums clear 42 numbers, read 72 and 12 ids, and read and write one for each of the 72;
// their gradient reads the 72 picked and the ids and writes 72.
TEST(GeneralOps, MessagesMoveTheRowsThatEdgesName) {
    const Op sums = Rearrangement{"addrows", {{12, 6}, {12}}, {7, 6}};
    EXPECT_EQ(flops(sums, Pass::forward, 2), Flops{2 * 72});
    EXPECT_EQ(flops(sums, Pass::backward_data, 2), Flops{0});
    EXPECT_NEAR(bytes_moved(sums, Pass::forward, DataType::f32).value, 4 * (42 + 72 + 12 + 2 * 72), 1e-9);
    EXPECT_NEAR(bytes_moved(sums, Pass::backward_data, DataType::f32).value, 4 * (72 + 12 + 72), 1e-9);
    const Op taken = Rearrangement{"takerows", {{7, 6}, {12}}, {12, 6}};
    EXPECT_EQ(flops(taken, Pass::forward), Flops{0});
    EXPECT_EQ(flops(taken, Pass::backward_data), Flops{72});
    EXPECT_NEAR(bytes_moved(taken, Pass::forward, DataType::f32).value, 4 * (72 + 12 + 72), 1e-9);
    EXPECT_NEAR(bytes_moved(taken, Pass::backward_data, DataType::f32).value, 4 * (42 + 72 + 12 + 2 * 72), 1e-9);
}

TEST(GeneralOperators, AComparisonHasNoGradient) {
    const Op op = Elementwise{"compare", {8}, {{8}}};
    EXPECT_TRUE(has_pass(op, Pass::forward));
    EXPECT_FALSE(has_pass(op, Pass::backward_data));
}

TEST(GeneralOperators, ASliceReadsWhatStays) {
    const Op op = Rearrangement{"slice", {{10, 8}}, {2, 8}};
    EXPECT_EQ(bytes(op, Pass::forward), 4 * 2 * (16 + 16));
    EXPECT_EQ(bytes(op, Pass::backward_data), 4 * 2 * (16 + 80));  // the rest of the gradient is cleared
    EXPECT_EQ(work(op, Pass::forward), 0);
}

TEST(GeneralOperators, ATableGivesTheRowsThatArePicked) {
    const Op op = Gather{{50, 8}, {6, 8}, 6, true};
    EXPECT_EQ(parameters(op), 400);
    EXPECT_EQ(bytes(op, Pass::forward), 4 * 2 * (48 + 48 + 6));  // rows, what they become, indices of 4 bytes
    EXPECT_FALSE(has_pass(op, Pass::backward_data));
}

TEST(GeneralOperators, AStackOfProductsIsCountedByItsSizes) {
    const Op op = BatchedMatMul{{4, 6, 5}, {4, 5, 3}};
    EXPECT_EQ(output_shape(op), (Shape{4, 6, 3}));
    EXPECT_EQ(multiply_adds(op), 4 * 6 * 5 * 3);
    EXPECT_EQ(work(op, Pass::forward), 2 * 2 * 360);
    EXPECT_EQ(work(op, Pass::backward_data), 2 * 4 * 360);
    const Op trained = BatchedMatMul{{6, 5}, {4, 5, 3}, 2};
    EXPECT_EQ(output_shape(trained), (Shape{4, 6, 3}));
    EXPECT_EQ(parameters(trained), 60);
    EXPECT_EQ(work(trained, Pass::backward_data), work(trained, Pass::backward_weights));
    EXPECT_THROW(output_shape(BatchedMatMul{{4, 6, 5}, {4, 6, 3}}), InputError);
    EXPECT_THROW(output_shape(BatchedMatMul{{4, 6, 5}, {3, 5, 3}}), InputError);
}

TEST(GeneralOperators, AnLstmHasTheParametersOfPyTorch) {
    const Op op = Recurrent{"lstm", 7, 10, 24, 2, true};
    EXPECT_EQ(parameters(op), 2 * (96 * 10 + 96 * 24 + 2 * 96));
    EXPECT_EQ(multiply_adds(op), 7 * 2 * 96 * (10 + 24));
    EXPECT_EQ(output_shape(op), (Shape{7, 2, 24}));
}

TEST(GeneralOperators, ASharedOperatorCostsTheSameAndTrainsNothingOfItsOwn) {
    const Op conv = Conv{4, 8, 8, 4, Window{}};
    const Op shared = Shared{std::make_shared<const SharedOp>(SharedOp{conv})};
    EXPECT_EQ(parameters(shared), 0);
    EXPECT_EQ(weights_read(shared), parameters(conv));
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        EXPECT_EQ(flops(shared, pass, 3), flops(conv, pass, 3));
        EXPECT_EQ(bytes_moved(shared, pass, DataType::f32, 3), bytes_moved(conv, pass, DataType::f32, 3));
    }
    EXPECT_FALSE(has_pass(shared, Pass::update));
    EXPECT_EQ(computed(shared), conv);
    Network network{
        "shared",
        {{"input", Input{{4, 8, 8}}, {}, {4, 8, 8}}, {"a", conv, {0}, {4, 8, 8}}, {"b", shared, {1}, {4, 8, 8}, 1}}};
    EXPECT_NO_THROW(check(network));
    EXPECT_EQ(parameters(network), 16);
    network.layers[2].weights_of = 0;
    EXPECT_THROW(check(network), InputError);
}

TEST(GeneralOperators, WhatIsGuessedIsAShareOfTheBytes) {
    const Op known = Activation{Nonlinearity::relu, {8}}, unknown = Unknown{"Fancy", 8, 0, {8}};
    const Network network{"half", {{"input", Input{{8}}, {}, {8}}, {"a", known, {0}, {8}}, {"b", unknown, {1}, {8}}}};
    // Of ReLU 64 and 96 bytes, of the other 64 and 64.
    EXPECT_DOUBLE_EQ(guessed_share(network), 128.0 / 288);
}

}  // namespace
}  // namespace rehearse
