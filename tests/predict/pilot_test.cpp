// SPDX-License-Identifier: Apache-2.0
// Pilots. Oracle: sums by hand, of a step whose communication is all exposed: it takes scale x compute + communication.
#include "predict/pilot.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.hpp"
#include "models/builder.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "predict/spread.hpp"

namespace rehearse::predict {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Two layers, 1,000 to 1,000 to 10; nothing is sent while something computes.
Job two_layers(std::vector<std::int64_t> devices) {
    models::NetworkBuilder network("two", Shape{1000});
    network.loss(network.dense("second", network.dense("first", 0, 1000), 10));
    return {.network = network.build(),
            .machine = models::load_machine("summit"),
            .plan = schedule::parse_plan("data:overlap=off"),
            .devices = std::move(devices),
            .batch = 1024};
}

Point point_on(std::int64_t devices) { return predict(two_layers({devices})).points.at(0); }

TEST(FittedScale, IsThatOfTheLine) {
    // 2 x 0.2 + 0.1 = 0.5
    const auto step_with = [](double factor) { return Seconds{0.2 * factor + 0.1}; };
    EXPECT_NEAR(fitted_scale(step_with, Seconds{0.5}), 2, 1e-3);
    EXPECT_NEAR(fitted_scale([](double factor) { return Seconds{0.2 * factor}; }, Seconds{0.5}), 2.5, 1e-12);
    EXPECT_NEAR(fitted_scale(step_with, Seconds{0.05}), 0.01, 1e-12) << "communication alone takes longer";
}

TEST(Pilots, ScaleComputationToMeetTheSmallest) {
    const Point cold = point_on(4);
    const Seconds compute = cold.figures.time.compute, sent = cold.figures.time.exposed_comm;
    ASSERT_NEAR((compute + sent) / cold.figures.time.step, 1, 1e-9);
    ASSERT_GT(sent, Seconds{});
    Job job = two_layers({4, 12});
    job.pilots = {{.devices = 4, .step = 3.0 * compute + sent}};
    const Prediction prediction = predict(job);
    const Point& measured = prediction.points[0];
    ASSERT_TRUE(measured.anchor && measured.measured);
    EXPECT_NEAR(measured.anchor->scale, 3, 3e-3);
    EXPECT_NEAR(measured.figures.time.compute / compute, 3, 3e-3);
    EXPECT_NEAR(measured.figures.time.exposed_comm / sent, 1, 1e-6);
    EXPECT_NEAR(measured.figures.time.step / *measured.measured, 1, 1e-3);
    // Repeated runs: 5 %, nine in ten within 1.645 of them.
    EXPECT_NEAR(measured.band.high / *measured.measured, std::exp(1.645 * 0.05), 1e-9);
    EXPECT_NEAR(*measured.measured / measured.band.low, std::exp(1.645 * 0.05), 1e-9);
}

TEST(Pilots, AnchorAllOtherPoints) {
    const Point small = point_on(4), large = point_on(24);
    Job job = two_layers({24});
    job.pilots = {{.devices = 4, .step = 2.0 * small.figures.time.compute + small.figures.time.exposed_comm}};
    const Prediction prediction = predict(job);
    const Point& point = prediction.points.at(0);
    ASSERT_TRUE(point.anchor);
    EXPECT_EQ(point.anchor->devices, 4);
    EXPECT_FALSE(point.measured);
    // The slowest of 24 cards is slower than that of four.
    const double more = slowest_of(24) / slowest_of(4);
    EXPECT_NEAR(point.figures.time.compute / large.figures.time.compute, 2 * more, 3e-3);
    EXPECT_NEAR(point.figures.time.exposed_comm / large.figures.time.exposed_comm, 1, 1e-6);
    // At least the distance: 5 %, and log2(24 / 4) doublings of 3 %.
    const double distance = 1.645 * std::hypot(0.05, 0.03 * std::log2(6.0));
    EXPECT_GE(std::log(point.band.high / point.figures.time.step), distance - 1e-9);
    EXPECT_LT(point.band.high / point.band.low, large.band.high / large.band.low) << "narrower than cold";
}

TEST(Pilots, AreRatesOrTimes) {
    Job job = two_layers({1});
    job.pilots = {{.devices = 1, .samples_per_s = 4096}};  // 1,024 samples a step: 0.25 s
    const Prediction prediction = predict(job);
    EXPECT_NEAR(prediction.points[0].figures.time.step.value, 0.25, 1e-4);
    EXPECT_DOUBLE_EQ(prediction.pilots.at(0).measured.value, 0.25);
}

TEST(Pilots, ThatContradictSayWhatWouldExplainThem) {
    const Point cold = point_on(4);
    const Seconds compute = cold.figures.time.compute, sent = cold.figures.time.exposed_comm;
    Job job = two_layers({4});
    job.pilots = {{.devices = 4, .step = cold.figures.time.step}, {.devices = 8, .step = Seconds{1}}};
    std::vector<ComparedPilot> pilots = predict(job).pilots;
    ASSERT_EQ(pilots.size(), 2U);
    EXPECT_FALSE(pilots[0].contradicts());
    EXPECT_NEAR(pilots[0].computation, 1, 1e-3);
    EXPECT_TRUE(pilots[1].contradicts()) << "a second for what takes milliseconds";
    EXPECT_NEAR(pilots[0].likely.high / pilots[0].cold - 1,
                2.576 / 1.645 * (cold.band.high / cold.figures.time.step - 1), 1e-9);
    job.pilots = {{.devices = 4, .step = compute + 5.0 * sent}};
    pilots = predict(job).pilots;
    EXPECT_NEAR(pilots[0].messages.value(), 5, 1e-6);
    EXPECT_NEAR(pilots[0].computation, (compute + 4.0 * sent) / compute, 1e-2);
    job.pilots = {{.devices = 4, .step = 0.1 * sent}};
    pilots = predict(job).pilots;
    EXPECT_FALSE(pilots[0].is_met()) << "messages alone take ten times as long";
    EXPECT_FALSE(pilots[0].messages);
    // Two operations for each of 1,010,000 weights and 1,024 samples, as many again for the weights' gradients, and for
    // the inputs' of the second layer, at no more than 15.7 TFLOP/s.
    EXPECT_GE(pilots[0].least.value, (2 * 1010000.0 + 10000) * 2 * 1024 / 15.7e12);
}

TEST(Pilots, ThatCannotBeAreRefused) {
    const auto with = [](std::vector<Pilot> pilots) {
        Job job = two_layers({4});
        job.pilots = std::move(pilots);
        return [job] { predict(job); };
    };
    EXPECT_THAT(with({{.devices = 0, .step = Seconds{1}}}), ThrowsMessage<InputError>(HasSubstr("at least 1")));
    EXPECT_THAT(with({{.devices = 4, .step = Seconds{0}}}), ThrowsMessage<InputError>(HasSubstr("above 0")));
    EXPECT_THAT(with({{.devices = 4, .step = Seconds{1}}, {.devices = 4, .samples_per_s = 7}}),
                ThrowsMessage<InputError>(HasSubstr("two of 4 devices")));
    EXPECT_THAT(with({{.devices = 4, .step = Seconds{1}, .global_batch = 32}}),
                ThrowsMessage<InputError>(HasSubstr("measured with 32 samples a step, the prediction has 4096")));
}

}  // namespace
}  // namespace rehearse::predict
