// SPDX-License-Identifier: Apache-2.0
// A simulated step in the units of published figures, and back. Oracle: worked out by hand.
#include "validate/measure.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace rehearse::validate {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// 100 samples on 4 devices in half a second: 200 a second.
const StepResult step{Seconds{0.5}, 100, 4, 6e9};

TEST(Measure, OfAStep) {
    EXPECT_DOUBLE_EQ(figure_of(step, {.measure = Measure::throughput}), 200);
    EXPECT_DOUBLE_EQ(figure_of(step, {.measure = Measure::step, .unit = 1e-3}), 500);
    // Three samples are told of for every two trained.
    EXPECT_DOUBLE_EQ(figure_of(step, {.measure = Measure::throughput, .counted = 1.5}), 300);
    // 1,200 samples take 6 s, a tenth of a minute; ten epochs a minute.
    EXPECT_DOUBLE_EQ(figure_of(step, {.measure = Measure::epoch, .unit = 60, .dataset = 1200}), 0.1);
    EXPECT_DOUBLE_EQ(figure_of(step, {.measure = Measure::training, .unit = 60, .dataset = 1200, .epochs = 10}), 1);
    // 200 samples of 5 GFLOP a second are 1 TFLOP/s, a quarter of it on each device.
    const Metric rate{.measure = Measure::flop_rate, .unit = 1e12, .sample_flops = 5e9};
    EXPECT_DOUBLE_EQ(figure_of(step, rate), 1);
    Metric each = rate;
    each.measure = Measure::flop_rate_per_device;
    EXPECT_DOUBLE_EQ(figure_of(step, each), 0.25);
}

TEST(Measure, RelativeToABaseline) {
    // One device: 25 samples in 0.4 s, 62.5 a second. Four are 3.2 times as fast, at an efficiency of 80 %.
    const StepResult one{Seconds{0.4}, 25, 1, 3e9};
    const auto relative = [&](Measure measure, double unit) {
        return figure_of(step, {.measure = measure, .unit = unit, .baseline = one});
    };
    EXPECT_DOUBLE_EQ(relative(Measure::speedup, 1), 3.2);
    EXPECT_DOUBLE_EQ(relative(Measure::efficiency, 0.01), 80);
    EXPECT_DOUBLE_EQ(relative(Measure::flop_efficiency, 0.01), 160) << "with twice the operations a sample";
}

TEST(Measure, OfACollective) {
    // 1 GB on 4 devices in half a second: 2 GB/s, of which an all-reduce sends 2 (n - 1) / n over each wire.
    const StepResult sum{Seconds{0.5}, 1e9, 4};
    EXPECT_DOUBLE_EQ(figure_of(sum, {.measure = Measure::bandwidth, .unit = 1e9}), 2);
    EXPECT_DOUBLE_EQ(figure_of(sum, {.measure = Measure::bus_bandwidth, .unit = 1e9}), 3);
    EXPECT_DOUBLE_EQ(figure_of(sum, {.measure = Measure::both_directions, .unit = 1e9}), 4);
}

TEST(Measure, AFigureTellsOfItsStep) {
    const Metric all[] = {{.measure = Measure::throughput, .unit = 2},
                          {.measure = Measure::throughput, .counted = 1.5},
                          {.measure = Measure::step, .unit = 1e-3},
                          {.measure = Measure::epoch, .unit = 60, .dataset = 1e6},
                          {.measure = Measure::training, .unit = 3600, .dataset = 1e6, .epochs = 90},
                          {.measure = Measure::flop_rate, .unit = 1e15, .sample_flops = 5e9},
                          {.measure = Measure::flop_rate_per_device, .unit = 1e12, .sample_flops = 5e9}};
    for (const Metric& y : all) {
        EXPECT_NEAR(step_of(figure_of(step, y), step.samples, step.devices, y).value, 0.5, 1e-12)
            << static_cast<int>(y.measure);
    }
}

TEST(Measure, IsNamedByTheMetricOrASetting) {
    PublishedRow row;
    row.columns = {{"metric", "epoch_time"}, {"unit", "min (of 16)"}};
    EXPECT_EQ(measure_of(row, {}), Measure::epoch);
    EXPECT_EQ(measure_of(row, {{"measure", "speedup"}}), Measure::speedup);
    EXPECT_THAT(
        [&] {
            (void)measure_of(row, {{"measure", "loudness"}});
        },
        ThrowsMessage<InputError>(HasSubstr("'loudness' is no measure")));
    const Metric y = metric_of(row, {{"dataset", "1,281,167"}}, Measure::epoch);
    EXPECT_DOUBLE_EQ(y.unit, 60);
    EXPECT_DOUBLE_EQ(y.dataset, 1281167);
    EXPECT_THAT([&] { (void)metric_of(row, {}, Measure::epoch); },
                ThrowsMessage<InputError>(HasSubstr("how many samples an epoch has is not said")));
    row.columns["unit"] = "images/s";
    EXPECT_DOUBLE_EQ(metric_of(row, {{"counted", "100/70"}}, Measure::throughput).counted, 100.0 / 70);
    row.columns["unit"] = "min (of 16)";
    EXPECT_THAT([&] { (void)metric_of(row, {}, Measure::throughput); },
                ThrowsMessage<InputError>(HasSubstr("is samples a second (samples/s, images/s), not 'min (of 16)'")));
    row.columns["metric"] = "top1_accuracy";
    EXPECT_EQ(measure_of(row, {}), std::nullopt);
}

}  // namespace
}  // namespace rehearse::validate
