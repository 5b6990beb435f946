// SPDX-License-Identifier: Apache-2.0
#include "core/prices.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace rehearse {
namespace {

using namespace literals;

DeviceClass device() {
    DeviceClass d;
    d.name = "toy";
    d.peak[DataType::f32] = {10_TFLOPS, "data sheet"};
    d.memory_bandwidth = {100_GBps, "data sheet"};
    d.launch = {5_us, "measured"};
    d.efficiencies = {{"*", {}, {}, 0.8, 0.1, "any"},
                      {"conv2d", {}, {}, 0.5, 0.2, "conv"},
                      {"conv2d", Pass::forward, {}, 0.25, 0.3, "conv forward"}};
    return d;
}

// 64 x 64 filters of 1x1 on 100 x 100: 10^4 * 64 * 128 = 81.92 MFLOP a sample; 2 * 64 * 10^4 * 4 B + 16 kB = 5.13 MB.
const Conv2d conv{64, 100, 100, 64, Window{}};

TEST(Roofline, TakesTheSlowerOfComputeAndMemory) {
    const Price p = price({conv, Pass::forward, 1, DataType::f32}, device());
    const double memory = (2 * 64 * 1e4 * 4 + 64 * 64 * 4) / 100e9;  // 51.4 us; compute is 8.2 us
    EXPECT_DOUBLE_EQ(p.time.value, memory / 0.25 + 5e-6);
    EXPECT_EQ(p.error, 0.3);
    EXPECT_THAT(p.source, testing::HasSubstr("memory bound"));
    const Conv2d big{512, 14, 14, 512, Window{3, 3, 1, 1, 1, 1, 1, 1}};
    const Price q = price({big, Pass::backward_data, 32, DataType::f32}, device());
    EXPECT_DOUBLE_EQ(q.time.value, 32 * 2.0 * 512 * 196 * 512 * 9 / 10e12 / 0.5 + 5e-6);
    EXPECT_THAT(q.source, testing::HasSubstr("compute bound"));
    EXPECT_EQ(price({Add{{10}}, Pass::forward, 1, DataType::f32}, device()).error, 0.1);
}

TEST(Roofline, NeedsThePeakOfItsType) {
    EXPECT_THROW(price({conv, Pass::forward, 1, DataType::f16}, device()), InputError);
}

TEST(MeasuredPrice, BeatsTheRoofline) {
    DeviceClass d = device();
    d.measured[to_string(Problem{conv, Pass::forward, 8, DataType::f32})] = {2_ms, 0.05, 20, "measured, host, 20"};
    const Price p = price({conv, Pass::forward, 8, DataType::f32}, d);
    EXPECT_EQ(p.time, 2_ms);
    EXPECT_EQ(p.error, 0.05);
    EXPECT_EQ(p.source, "measured, host, 20");
}

TEST(MeasuredPrice, IsInterpolatedBetweenBatches) {
    DeviceClass d = device();
    d.measured[to_string(Problem{conv, Pass::forward, 8, DataType::f32})] = {2_ms, 0.05, 20, "a"};
    d.measured[to_string(Problem{conv, Pass::forward, 16, DataType::f32})] = {3_ms, 0.1, 20, "b"};
    d.measured[to_string(Problem{conv, Pass::backward_data, 12, DataType::f32})] = {9_ms, 0.1, 20, "c"};
    EXPECT_DOUBLE_EQ(price({conv, Pass::forward, 12, DataType::f32}, d).time.value, 2.5e-3);
    EXPECT_EQ(price({conv, Pass::forward, 12, DataType::f32}, d).error, 0.1);
    // Beyond: in proportion, with 10 % more error a doubling.
    const Price beyond = price({conv, Pass::forward, 32, DataType::f32}, d);
    EXPECT_DOUBLE_EQ(beyond.time.value, 6e-3);
    EXPECT_DOUBLE_EQ(beyond.error, std::hypot(0.1, 0.1));
    EXPECT_DOUBLE_EQ(price({conv, Pass::forward, 4, DataType::f32}, d).time.value, 1e-3);
}

TEST(Quantile, MovesEachPriceByItsOwnError) {
    const Price p{10_ms, 0.2, ""};
    EXPECT_EQ(at(p, nominal), 10_ms);
    EXPECT_DOUBLE_EQ(at(p, high).value, 12e-3);
    EXPECT_DOUBLE_EQ(at(p, low).value, 8e-3);
    EXPECT_DOUBLE_EQ(at(Price{10_ms, 0.9, ""}, low).value, 5e-3);
}

}  // namespace
}  // namespace rehearse
