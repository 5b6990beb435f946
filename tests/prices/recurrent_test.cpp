// SPDX-License-Identifier: Apache-2.0
#include "prices/recurrent.hpp"

#include <gtest/gtest.h>

#include "models/models.hpp"

namespace rehearse {
namespace {

DeviceClass plain() {
    DeviceClass device;
    device.name = "plain";
    device.peak[DataType::f32] = {FlopRate{1e12}, "a test"};
    device.memory_bandwidth = {Bandwidth{1e11}, "a test"};
    device.launch = {Seconds{1e-5}, "a test"};
    return device;
}

// By hand, of 4 samples, 10 steps, 64 inputs, an LSTM of 128: the state's product reads and writes 4 x 128, 128 x 512
// and 4 x 512 numbers of 4 bytes at 100 GB/s, which is longer than its 4 x 512 x 128 multiply-adds; the gates two of
// their size and write one. Each of the ten steps starts two kernels. The input's product is one of 40 rows.
TEST(RecurrentPrice, IsOneProductAndOneKernelAStep) {
    const Recurrent op{.cell = "lstm", .steps = 10, .inputs = 64, .hidden = 128, .bias = false};
    const RecurrentPrice price = recurrent_price(op, Pass::forward, 4, DataType::f32, plain());
    const double product = 4.0 * (4 * 128 + 128 * 512 + 4 * 512) / 1e11, gates = 4.0 * 3 * 4 * 512 / 1e11;
    EXPECT_NEAR(price.steps.time.value, 10 * (product + gates + 2e-5), 1e-12);
    const double input = 2.0 * 40 * 512 * 64 / 1e12, moved = 4.0 * (40 * 64 + 64 * 512 + 40 * 512) / 1e11;
    EXPECT_NEAR(price.input.time.value, std::max(input, moved) + 1e-5, 1e-12);
    EXPECT_NEAR(price.whole().time.value, price.input.time.value + price.steps.time.value, 1e-15);
    EXPECT_EQ(rehearse::price({op, Pass::forward, 4, DataType::f32}, plain()).time, price.whole().time);
}

TEST(RecurrentPrice, OfTheWeightsGradientHasOneKernelForAllSteps) {
    const Recurrent op{.cell = "gru", .steps = 10, .inputs = 64, .hidden = 128, .directions = 2, .bias = false};
    const RecurrentPrice price = recurrent_price(op, Pass::backward_weights, 4, DataType::f32, plain());
    const double states = 2.0 * 40 * 128 * 384 / 1e12;  // arithmetic is longer than 4 x (40 x 512 + 128 x 384) bytes
    EXPECT_NEAR(price.steps.time.value, 2 * (states + 1e-5), 1e-12);
}

// DeepBench's own row (V100, f32, da81ba7): an LSTM of 2048, batch 64, 25 steps, 5,570 microseconds forward, of its
// steps alone. A roofline says a quarter of it.
TEST(RecurrentPrice, OfAMeasuredLayerIsWhatWasMeasured) {
    const Machine machine = models::load_machine("dgx1-v100");
    const Recurrent op{.cell = "lstm", .steps = 25, .inputs = 2048, .hidden = 2048};
    const RecurrentPrice price = recurrent_price(op, Pass::forward, 64, DataType::f32, class_of(machine, 0));
    EXPECT_NEAR(price.steps.time.value, 5570e-6, 0.05 * 5570e-6);
    EXPECT_NEAR(price.input.time.value, 2.0 * 64 * 25 * 8192 * 2048 / 15.7e12, 0.35 * price.input.time.value);
}

// Twice the steps are twice the time, a hidden size between two measured ones lies between them.
TEST(RecurrentPrice, GrowsWithStepsAndSize) {
    const Machine machine = models::load_machine("dgx1-v100");
    const auto steps = [&](std::int64_t count, std::int64_t hidden) {
        const Recurrent op{.cell = "lstm", .steps = count, .inputs = hidden, .hidden = hidden};
        return recurrent_price(op, Pass::forward, 32, DataType::f32, class_of(machine, 0)).steps.time.value;
    };
    EXPECT_NEAR(steps(50, 1024) / steps(25, 1024), 2, 0.4);
    EXPECT_LT(steps(25, 1024), steps(25, 1280));
    EXPECT_LT(steps(25, 1280), steps(25, 2048));
}

}  // namespace
}  // namespace rehearse
