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
    EXPECT_NEAR(measured.anchor->computation, 3, 3e-3);
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
    EXPECT_NEAR(point.figures.time.compute / large.figures.time.compute, 2, 3e-3);
    const double crowd = beside(6, 4);  // six cards in a node of Summit, and four
    EXPECT_NEAR(large.figures.time.compute / small.figures.time.compute, slowest_of(24) / slowest_of(4) * crowd, 1e-9)
        << "the slowest of 24 cards is slower than that of four";
    EXPECT_NEAR(point.figures.time.exposed_comm / large.figures.time.exposed_comm, 1, 1e-6);
    // At least the distance: 5 %, and log2(24 / 4) doublings of 3 %.
    const double distance = 1.645 * std::hypot(0.05, 0.03 * std::log2(6.0));
    EXPECT_GE(std::log(point.band.high / point.figures.time.step), distance - 1e-9);
    EXPECT_LT(point.band.high / point.band.low, large.band.high / large.band.low) << "narrower than cold";
}

// One device copies nothing into buckets: its kernels take three times as long, the copies of two as long as without.
TEST(Pilots, LeaveCopiesOfGradientsAsTheyAre) {
    const Point one = point_on(1), two = point_on(2);
    Job job = two_layers({2});
    job.framework.copies.buckets = 2000;  // far above rounding
    job.pilots = {{.devices = 1, .step = 3.0 * one.figures.time.step}};
    const Prediction prediction = predict(job);
    ASSERT_NEAR(prediction.points[0].anchor->computation, 3, 3e-3);
    // Each copy reads and writes 1000 x 1000 + 1000 + 1000 x 10 + 10 floats once.
    const double bytes = 2000.0 * 2 * 4 * 1011010;
    const Seconds copies{bytes / class_of(job.machine, 0).memory_bandwidth.value.value * slowest_of(2) * beside(2)};
    const Seconds expected = 3.0 * two.figures.time.compute + two.figures.time.exposed_comm + copies;
    EXPECT_NEAR(prediction.points[0].figures.time.step / expected, 1, 1e-3);
    // A second pilot whose kernels took a tenth longer than that: what it takes to explain it leaves copies, too.
    job.pilots.push_back({.devices = 2, .step = expected + 0.3 * two.figures.time.compute});
    const Prediction both = predict(job);
    EXPECT_NEAR(both.pilots[1].computation, 1.1, 3e-3) << "times the three";
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
    EXPECT_NEAR(std::log(pilots[0].likely.high / pilots[0].predicted),
                2.576 / 1.645 * std::log(cold.band.high / cold.figures.time.step), 1e-9);
    EXPECT_FALSE(pilots[0].anchored_on);
    EXPECT_EQ(pilots[1].anchored_on, 4) << "it is held against what the smaller one says";
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

// A world in which computation takes 1.5 times, and messages 0.8 standard deviations longer than their prices say.
Seconds true_step(std::int64_t devices) {
    return step_of(anchored(setup_of(two_layers({}), devices), {.computation = 1.5, .messages = 0.8})).time;
}

TEST(Pilots, OnSeveralNodesMoveMessagesInTheirBand) {
    Job job = two_layers({6, 24, 96});
    job.pilots = {{.devices = 6, .step = true_step(6)}};
    const Prediction once = predict(job);
    job.pilots.push_back({.devices = 24, .step = true_step(24)});
    const Prediction twice = predict(job);
    ASSERT_EQ(twice.anchors.pilots.size(), 2U);
    const Anchor &small = twice.anchors.pilots[0], &large = twice.anchors.pilots[1];
    // On a line, the mean of 0 with deviation 1, and of 0.8 with that of the distance (5 %, two doublings of 3 %) over
    // what a deviation of messages does to the larger step while the smaller one stays met.
    const double error = std::hypot(0.05, 2 * 0.03);
    const auto met = [&](double messages) {
        const predict::Setup setup = setup_of(two_layers({}), 6);
        Anchor anchor{.messages = messages};
        anchor.computation = fitted_scale(
            [&](double factor) {
                anchor.computation = factor;
                return step_of(anchored(setup, anchor)).time;
            },
            true_step(6));
        return step_of(anchored(setup_of(two_layers({}), 24), anchor)).time;
    };
    const double slope = std::log(met(0.8) / met(0)) / 0.8;
    ASSERT_GT(slope, 0);
    EXPECT_NEAR(large.messages, 0.8 * slope * slope / (slope * slope + error * error), 0.08);
    EXPECT_LT(large.messages_left, 1);
    EXPECT_EQ(small.messages, large.messages);
    EXPECT_NEAR(twice.points[1].figures.time.step / true_step(24), 1, 1e-3) << "the second one is met, too";
    EXPECT_EQ(twice.points[0].anchor->devices, 6);
    EXPECT_EQ(twice.points[2].anchor->devices, 24);
    const auto off = [&](const Prediction& of) {
        return std::abs(std::log(of.points[2].figures.time.step / true_step(96)));
    };
    EXPECT_LT(off(twice), off(once));
    EXPECT_LT(twice.points[2].uncertainty.factor(), once.points[2].uncertainty.factor()) << "nearer, and better known";
    EXPECT_LT(twice.points[2].uncertainty.messages, once.points[2].uncertainty.messages);
    EXPECT_TRUE(twice.points[1].measured && !twice.points[2].measured);
}

TEST(Pilots, MoveMessagesNoFurtherThanTheirBand) {
    Job job = two_layers({96});
    job.pilots = {{.devices = 6, .step = true_step(6)}, {.devices = 24, .step = 100.0 * true_step(24)}};
    const Prediction prediction = predict(job);
    EXPECT_DOUBLE_EQ(prediction.anchors.pilots.at(1).messages, 1.645);
    EXPECT_GT(prediction.anchors.pilots.at(1).computation, 10 * prediction.anchors.pilots.at(0).computation);
    EXPECT_TRUE(prediction.pilots.at(1).contradicts());
}

TEST(Pilots, InsideANodeSayNothingOfTheNetwork) {
    Job job = two_layers({96});
    job.pilots = {{.devices = 1, .step = true_step(1)}, {.devices = 6, .step = true_step(6)}};
    const Prediction prediction = predict(job);
    EXPECT_EQ(prediction.anchors.pilots.size(), 1U);
    EXPECT_EQ(prediction.points[0].anchor->messages, 0);
    EXPECT_EQ(prediction.pilots.size(), 2U);
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
