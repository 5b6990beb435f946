// SPDX-License-Identifier: Apache-2.0
// What a prediction's step and band are made of. Oracle: the step itself, which the parts add up to.
#include "predict/explain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "predict/predict.hpp"
#include "predict/spread.hpp"
#include "tests/predict/summit_job.hpp"

namespace rehearse::predict {
namespace {

// Gradients are summed after the backward pass, so that the step is computation and messages, and only cards differ.
TEST(Explained, AStepWaitsForItsSlowestCard) {
    Job job = summit_job("lenet5", {1, 12});
    job.plan = schedule::parse_plan("data:overlap=off");
    const Prediction prediction = predict(job);
    const Point &one = prediction.points[0], &all = prediction.points[1];
    EXPECT_DOUBLE_EQ(one.waiting, 1);
    EXPECT_DOUBLE_EQ(all.waiting, slowest_of(12));
    const double longer = slowest_of(12) * beside(6);  // beside five others of its node
    EXPECT_NEAR(all.figures.time.compute / one.figures.time.compute, longer, 1e-9);
    job.plan = schedule::parse_plan("data:overlap=off:bucket=1GB:first=1GB");
    const predict::Setup setup = setup_of(job, 12);
    predict::Setup patient = setup;
    patient.options.pace.clear();
    const Seconds computing = one.figures.time.compute;
    EXPECT_NEAR((step_of(setup).time - step_of(patient).time) / (computing * (longer - 1)), 1, 1e-6)
        << "messages take no longer";
    double waited = 0, crowded = 0, kernels = 0;
    for (const Explained& part : explained(prediction)) {
        if (part.what == "waiting for the slowest card") waited = part.total.value;
        if (part.what == "beside other cards of a node") crowded = part.total.value;
        if (part.steps > 0 && part.what.find("allreduce") == std::string::npos) kernels += part.total.value;
    }
    EXPECT_NEAR(waited / (kernels - waited), slowest_of(12) - 1, 1e-9);
    EXPECT_NEAR(crowded / (kernels - waited - crowded), beside(6) - 1, 1e-9);
}

// Four workers push to and pull from one server, which is the only thing that a step does besides computing. In its
// explanation it has a row, shares are of a worker's step, and what is computed is what the step computes.
TEST(Explained, TradesWithServersHaveARow) {
    Job job = summit_job("vgg16", {5});
    job.plan = schedule::parse_plan("data=4,server=1");
    const Prediction prediction = predict(job);
    const Summary& time = prediction.points[0].figures.time;
    EXPECT_EQ(summarize(prediction.timeline).step, time.step);
    Seconds computed, traded;
    for (const Explained& part : explained(prediction)) {
        EXPECT_DOUBLE_EQ(part.share, part.total / time.step);
        (part.what == "push to and pull from servers" ? traded : computed) += part.total;
    }
    EXPECT_NEAR(computed / time.compute, 1, 1e-6);
    EXPECT_GE(traded / time.exposed_comm, 1 - 1e-9) << "what is not hidden is part of it";
}

// What a pipeline sends, and samples that are read, have rows, too: with them nothing but waiting is left of the step.
TEST(Explained, MessagesOfAPipelineAndReadingHaveRows) {
    Job job = summit_job("lenet5", {2});
    job.plan = schedule::parse_plan("pipe=2:microbatches=2");
    job.conditions.input = "alpine";
    job.conditions.sample = Bytes{1e6};
    const std::vector<Explained> parts = explained(predict(job));
    const auto has = [&](std::string_view what) { return std::ranges::count(parts, what, &Explained::what) == 1; };
    EXPECT_TRUE(has("messages between stages"));
    EXPECT_TRUE(has("reading from alpine"));
}

// Where layers share what they read, and micro-batches their weights, gradients are added up beside the kernels.
TEST(Explained, SumsOfGradientsHaveARow) {
    Job job = summit_job("resnet50", {1});
    job.plan = schedule::parse_plan("data=1:microbatches=4");
    double share = 0, sums = 0;
    for (const Explained& part : explained(predict(job))) {
        share += part.share;
        if (part.what == "sums of gradients") sums += part.share;
    }
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_GT(sums, 0.01);
}

// All parts of a band are independent: their logarithms' squares add up.
TEST(Explained, ABandIsMadeOfItsParts) {
    const Prediction prediction = predict(summit_job("lenet5", {1, 16}));
    const Uncertainty &one = prediction.points[0].uncertainty, &all = prediction.points[1].uncertainty;
    EXPECT_DOUBLE_EQ(one.distance, 1) << "prices are of one card";
    EXPECT_DOUBLE_EQ(one.messages, 1) << "it sends nothing";
    EXPECT_NEAR(all.distance, std::exp(1.645 * 0.03 * 4), 1e-12) << "four doublings";
    EXPECT_NEAR(all.framework, std::exp(1.645 * 0.05), 1e-12);
    EXPECT_GT(all.messages, 1);
    EXPECT_GT(one.computation, all.computation) << "more of the step is computation";
    double squares = 0;
    for (const BandPart& part : band_parts(prediction)) squares += std::log(part.factor) * std::log(part.factor);
    const Point& point = prediction.points[1];
    EXPECT_NEAR(std::log(point.band.high / point.figures.time.step), std::sqrt(squares), 1e-12);
    EXPECT_NEAR(point.band.high / point.figures.time.step, point.figures.time.step / point.band.low, 1e-9);
}

}  // namespace
}  // namespace rehearse::predict
