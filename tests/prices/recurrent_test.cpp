// SPDX-License-Identifier: Apache-2.0
#include "prices/recurrent.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

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

// Gates are no product: beside products in TF32, of which the device has no figures but the peak, they are what they
// are in f32.
TEST(RecurrentPrice, InTf32HasGatesInF32) {
    DeviceClass device = plain();
    device.peak[DataType::tf32] = {FlopRate{1e30}, "a test"};
    const Recurrent op{.cell = "lstm", .steps = 10, .inputs = 64, .hidden = 128, .bias = false};
    const double read = 4.0 * (4 * 128 + 128 * 512 + 4 * 512) / 1e11, gates = 4.0 * 3 * 4 * 512 / 1e11;
    const RecurrentPrice price = recurrent_price(op, Pass::forward, 4, DataType::tf32, device);
    EXPECT_NEAR(price.steps.time.value, 10 * (read + gates + 2e-5), 1e-12);
    device.peak[DataType::f32].value = FlopRate{1e9};  // so slow that arithmetic is what gates wait for
    const double slow = 10 * (read + 4.0 * 512 * flops(Add{.shape = {1}, .inputs = 2}, Pass::forward, 1).value / 1e9);
    EXPECT_NEAR(recurrent_price(op, Pass::forward, 4, DataType::tf32, device).steps.time.value, slow + 2e-4, 1e-12);
}

// A host's own kernels: cells that take three times as long as products and gates would, in one pass.
TEST(RecurrentPrice, OfADeviceWithMeasuredCellsIsByTheirRatio) {
    DeviceClass device = plain();
    const auto cells = [](std::string cell, std::int64_t hidden) {
        return Recurrent{.cell = std::move(cell), .steps = 10, .inputs = 64, .hidden = hidden, .bias = false};
    };
    const auto whole = [&](const Recurrent& op, Pass pass) {
        return recurrent_price(op, pass, 4, DataType::f32, device).whole();
    };
    const Seconds before = whole(cells("lstm", 96), Pass::forward).time;
    const Seconds backward = whole(cells("lstm", 96), Pass::backward_data).time;
    const Seconds gru = whole(cells("gru", 96), Pass::forward).time;
    std::map<std::string, Measured> measured;
    for (const std::int64_t hidden : {64, 128}) {
        const Problem problem{cells("lstm", hidden), Pass::forward, 4, DataType::f32};
        measured[to_string(problem)] = {3 * whole(cells("lstm", hidden), Pass::forward).time, 0.01, 7, "a test"};
    }
    device.measured.insert(measured.begin(), measured.end());
    const Price after = whole(cells("lstm", 96), Pass::forward);
    EXPECT_NEAR(after.time / before, 3, 1e-9);
    EXPECT_NEAR(after.error, 0.4 / std::sqrt(3), 1e-9);  // they agree: one part in three is what others say
    EXPECT_NE(after.source.find("as 2 measured cells take"), std::string::npos);
    EXPECT_NEAR(whole(cells("gru", 96), Pass::forward).time / gru, 3, 1e-9) << "nothing nearer was measured";
    EXPECT_EQ(whole(cells("lstm", 96), Pass::backward_data).time, backward);
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
