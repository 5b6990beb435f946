// SPDX-License-Identifier: Apache-2.0
// The search against the simulation of every plan there is, on a machine small enough for that.
#include "search/search.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "search/screen.hpp"
#include "tests/search/requests.hpp"
#include "tests/sim/fixture.hpp"

namespace rehearse::search {
namespace {

using namespace rehearse::literals;
using test::request_for;
using test::tower;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// All plans of the space that can be, simulated.
std::vector<std::pair<Choices, Simulated>> every_plan(const Network& network, const Machine& machine,
                                                      const Request& request) {
    std::vector<std::pair<Choices, Simulated>> all;
    schedule::Job job = request.job;
    job.devices = request.devices.front();
    for (const Shape& shape : shapes(job.devices, request.most)) {
        for (const Choices& choices : choices_of(shape, *job.global_batch, request.variety)) {
            Simulated result = simulated(network, machine, job, plan_text(choices), Bytes{1e15}, false);
            if (result.refusal.empty()) all.emplace_back(choices, result);
        }
    }
    return all;
}

class Space : public testing::TestWithParam<std::pair<int, std::int64_t>> {};  // width, batch

TEST_P(Space, ItsBestIsFoundBySimulatingFew) {
    const auto [width, batch] = GetParam();
    const Network network = tower(4, width);
    Machine machine = sim::test::four_device_nodes(2);
    machine.classes[0].memory.value = Bytes{1e12};
    Request request = request_for(batch, 12);
    request.variety.chunks = 2;
    const auto all = every_plan(network, machine, request);
    ASSERT_GT(all.size(), 100U);
    for (const Bytes capacity : {Bytes{1e12}, Bytes{0.0}}) {
        // Without a limit, and with one that half of the plans are above.
        std::vector<double> sizes;
        for (const auto& [choices, result] : all) sizes.push_back(result.memory.value);
        std::ranges::nth_element(sizes, sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2));
        request.limits.memory = capacity > Bytes{} ? capacity : Bytes{sizes[sizes.size() / 2]};
        double best = INFINITY;
        std::string best_plan;
        for (const auto& [choices, result] : all) {
            if (result.memory > *request.limits.memory || result.step.value >= best) continue;
            best = result.step.value;
            best_plan = plan_text(choices);
        }
        const Result found = search(network, machine, request);
        ASSERT_FALSE(found.ranked.empty());
        EXPECT_LE(found.ranked.front().result.step.value, 1.01 * best)
            << found.ranked.front().plan << " is not " << best_plan;
        for (const Ranked& each : found.ranked) EXPECT_LE(each.result.memory, *request.limits.memory);
        EXPECT_TRUE(std::ranges::is_sorted(found.ranked, {}, [](const Ranked& each) { return each.result.step; }));
    }
}

class UnderFramework : public testing::TestWithParam<const char*> {
protected:
    const models::FrameworkProfile profile_ = models::load_framework(GetParam());
    const Network network_ = tower(4, 512);
    const Machine machine_ = sim::test::four_device_nodes(2);

    double predicted(const std::string& plan, sim::Mode mode = sim::Mode::automatic) const {
        predict::Job job{.network = network_,
                         .machine = machine_,
                         .plan = schedule::parse_plan(plan),
                         .devices = {8},
                         .global_batch = 32,
                         .optimizer = Optimizer::adam,
                         .mode = mode};
        predict::follow(job, profile_);
        return predict::predict(job).points.front().figures.time.step.value;
    }
};

TEST_P(UnderFramework, RankedStepsAreWhatPredictGivesAndTheBestIsFound) {
    Request request = request_for(32, 6);
    request.framework = profile_;
    const Result found = search(network_, machine_, request);
    ASSERT_FALSE(found.ranked.empty());
    for (const Ranked& each : found.ranked)  // which has ten digits
        EXPECT_NEAR(each.result.step.value / predicted(each.plan), 1, 1e-9) << each.plan;
    // Whatever the framework has not settled is a plan that its users may write.
    double best = INFINITY;
    for (const Shape& shape : shapes(8, request.most)) {
        for (const Choices& choices : choices_of(shape, 32, request.variety)) {
            if (!profile_.value("zero").empty() && shape.copies() > 1 && choices.zero > 0 &&
                std::to_string(choices.zero) != profile_.value("zero"))
                continue;
            try {
                best = std::min(best, predicted(plan_text(choices), sim::Mode::folded));
            } catch (const InputError&) {
            }
        }
    }
    EXPECT_LE(found.ranked.front().result.step.value, 1.01 * best) << found.ranked.front().plan;
}

TEST_P(UnderFramework, WhatItHasSettledIsNotVaried) {
    Request request = request_for(32, 20);
    request.framework = profile_;
    for (const Ranked& each : search(network_, machine_, request).ranked) {
        if (each.choices.shape.copies() == 1) continue;
        const std::string zero = profile_.value("zero"), overlap = profile_.value("overlap");
        EXPECT_TRUE(zero.empty() || std::to_string(each.choices.zero) == zero) << each.plan;
        EXPECT_TRUE(overlap.empty() || each.choices.overlap == (overlap == "on")) << each.plan;
        EXPECT_TRUE(profile_.value("allreduce").empty() || each.plan.find("allreduce") == std::string::npos)
            << each.plan;
    }
}

INSTANTIATE_TEST_SUITE_P(Search, UnderFramework,
                         testing::Values("rehearse", "pytorch-ddp", "pytorch-fsdp", "megatron-lm"));

TEST_P(Space, NoPlanBeatsTheBoundOfItsMesh) {
    const auto [width, batch] = GetParam();
    const Network network = tower(4, width);
    const Machine machine = sim::test::four_device_nodes(2);
    Request request = request_for(batch, 1);
    request.variety.chunks = 2;
    Screen screen{network, machine, request.job};
    for (const auto& [choices, result] : every_plan(network, machine, request)) {
        const std::optional<double> bound = screen.bound(choices.shape);
        ASSERT_TRUE(bound) << plan_text(choices);
        EXPECT_GE(result.step.value, *bound * (1 - 1e-9)) << plan_text(choices);
    }
}

// Compute bound, and bound by the sums of gradients.
INSTANTIATE_TEST_SUITE_P(Towers, Space, testing::Values(std::pair{1024, 16}, std::pair{4096, 8}));

/// A sample a device of many layers with many weights, which eight devices share.
class Sharded : public testing::TestWithParam<int> {  // ZeRO's stage
protected:
    Sharded() {
        machine_.classes[0].memory.value = Bytes{1e12};
        for (const DataType type : {DataType::bf16, DataType::fp8})
            machine_.classes[0].peak[type] = {FlopRate{100e12}, "test"};
    }
    std::pair<Estimate, Simulated> both(Precision precision) {
        schedule::Job job{.devices = 8, .global_batch = 8, .precision = precision, .optimizer = Optimizer::adam};
        Choices choices{.shape = {.data = 8}, .zero = GetParam(), .overlap = GetParam() == 3};
        const Estimate estimate = Screen{network_, machine_, job}.estimate(choices).value();
        return {estimate, simulated(network_, machine_, job, plan_text(choices), Bytes{1e15}, false)};
    }

    const Network network_ = tower(32, 2048);
    Machine machine_ = sim::test::four_device_nodes(2);
};

// Gradients are summed in f32, weights gathered as layers read them, in bf16.
TEST_P(Sharded, WeightsAreGatheredInTheTypeOfLayers) {
    const auto [estimate, result] = both(Precision::bf16);
    EXPECT_NEAR(estimate.step_s / result.step.value, 1, 0.1);
}

// Each weight has two more bytes, as the operand of a product and transposed, but where it is let go after its use.
TEST_P(Sharded, OperandsOfProductsInFp8TakeMemory) {
    const auto [plain, plain_result] = both(Precision::bf16);
    const auto [estimate, result] = both(Precision::fp8);
    const double operands = GetParam() == 3 ? 0 : 2.0 * static_cast<double>(parameters(network_));
    const double activations = 1e6;  // less than those of one sample
    EXPECT_NEAR((result.memory - plain_result.memory).value, operands, activations);
    EXPECT_NEAR(estimate.memory_bytes - plain.memory_bytes, operands, activations);
}

INSTANTIATE_TEST_SUITE_P(Zero, Sharded, testing::Values(1, 2, 3));

TEST(Choices, AreWrittenInThePlanLanguage) {
    Choices choices{.shape = {4, 2, 8}, .micro_batch = 2, .micro_batches = 16};
    choices.chunks = 2;
    choices.zero = 1;
    choices.recompute = schedule::Recompute::blocks;
    choices.all_reduce = "hierarchical(ring,halving)";
    choices.overlap = false;
    EXPECT_EQ(plan_text(choices),
              "pipe=8:schedule=interleaved:chunks=2:microbatches=16:recompute=blocks,"
              "data=4:allreduce=hierarchical(ring,halving):zero=1:overlap=off,tensor=2");
    for (const Shape& shape : shapes(64, {8, 16})) {
        EXPECT_EQ(devices(shape), 64);
        for (const Choices& each : choices_of(shape, 64, {})) {
            const schedule::Plan plan = schedule::parse_plan(plan_text(each));
            EXPECT_EQ(ranks(plan.mesh), 64) << plan_text(each);
            EXPECT_EQ(each.micro_batch * each.micro_batches * shape.data, 64);
        }
    }
}

// The same number of devices asked for twice, and choices that change nothing on a network, are one plan.
TEST(Search, ListsNoPlanTwice) {
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    Request request = request_for(64, 30);
    request.devices = {8, 8, 4};
    const Result found = search(network, machine, request);
    std::set<std::pair<std::int64_t, std::string>> texts;
    std::set<std::tuple<std::int64_t, double, double>> figures;
    for (const Ranked& each : found.ranked) {
        EXPECT_TRUE(texts.emplace(each.devices, each.plan).second) << each.plan;
        EXPECT_TRUE(figures.emplace(each.devices, each.result.step.value, each.result.memory.value).second)
            << each.plan;
    }
}

// Of three copies on nodes of four one stays in a node from the first stage to the second, and two cross. They are
// simulated exactly, with which folded mode agrees.
TEST(Search, SimulatesPipelinesWhoseCopiesLieUnlikeAsPredictDoes) {
    const Network network = models::load_network("bert-base");
    const Machine machine = models::load_machine("alps");
    const auto predicted = [&](const char* plan, sim::Mode mode) {
        const predict::Job job{.network = network,
                               .machine = machine,
                               .plan = schedule::parse_plan(plan),
                               .devices = {12},
                               .global_batch = 192,
                               .precision = Precision::mixed,
                               .mode = mode};
        return predict::predict(job).points.front().figures.time.step;
    };
    schedule::Job job{.devices = 12, .global_batch = 192, .precision = Precision::mixed};
    const char* unlike = "pipe=4:microbatches=8,data=3";
    const Seconds step = simulated(network, machine, job, unlike, Bytes{1e15}, false).step;
    EXPECT_NEAR(step / predicted(unlike, sim::Mode::exact), 1, 1e-9) << "ten digits";
    EXPECT_NEAR(predicted(unlike, sim::Mode::folded) / step, 1, 0.005);
    const char* alike = "data=3,pipe=4:microbatches=8";
    const Seconds folded = simulated(network, machine, job, alike, Bytes{1e15}, false).step;
    EXPECT_NEAR(folded / predicted(alike, sim::Mode::folded), 1, 1e-9);
}

// The library that a machine's file names is tried on every mesh, of which some have ranks that lie unevenly.
TEST(Search, FindsPlansForDevicesThatDoNotFillTheLastNode) {
    const Network network = models::load_network("alexnet");
    for (const auto& [machine, devices] :
         {std::pair{"perlmutter", 6}, {"summit", 8}, {"eos", 12}, {"juwels-booster", 6}}) {
        Request request = request_for(24 * devices, 3);
        request.devices = {devices};
        request.job.precision = Precision::mixed;
        EXPECT_EQ(search(network, models::load_machine(machine), request).ranked.size(), 3U) << machine;
    }
}

// VGG-16 hands 205 MB of 32 samples from its second piece to the third, and 0.1 MB from the last but one: over two
// nodes of Summit the messages of the first pieces are most of the step.
TEST(Screen, EstimatesTheMessagesOfAllChunks) {
    const Network network = models::load_network("vgg16");
    const Machine machine = models::load_machine("summit");
    schedule::Job job;
    job.devices = 12;
    job.global_batch = 384;
    job.precision = Precision::mixed;
    Screen screen{network, machine, job};
    for (const auto& [data, pipe, micro_batches] : {std::tuple{3, 4, 4}, {3, 4, 16}, {6, 2, 2}, {6, 2, 8}}) {
        for (const int chunks : {1, 2, 4}) {
            Choices choices{.shape = {.data = data, .pipe = pipe}, .micro_batches = micro_batches, .chunks = chunks};
            choices.micro_batch = 384 / data / micro_batches;
            const std::optional<Estimate> estimate = screen.estimate(choices);
            ASSERT_TRUE(estimate);
            const Simulated result = simulated(network, machine, job, plan_text(choices), Bytes{1e15}, false);
            EXPECT_NEAR(std::log(result.step.value / estimate->step_s), 0, 0.35) << plan_text(choices);
        }
    }
}

TEST(Search, FindsTheSameFirstPlanHoweverFewAreRanked) {
    const Network network = models::load_network("vgg16");
    const Machine machine = models::load_machine("summit");
    Request request = request_for(384, fewest);
    request.devices = {12};
    request.job.precision = Precision::mixed;
    request.job.optimizer = Optimizer::sgd;
    const Result ten = search(network, machine, request);
    request.simulated = 1;
    const Result one = search(network, machine, request);
    ASSERT_EQ(one.ranked.size(), 1U);
    EXPECT_EQ(one.ranked.front().plan, ten.ranked.front().plan);
    EXPECT_EQ(one.counts.simulated, ten.counts.simulated);
}

// Ended in the middle, a search ranks what it has simulated, without bands.
TEST(Search, KeepsWhatItHasWhenItIsEnded) {
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 3);
    const Result whole = search(network, machine, request);
    const Result part = search(network, machine, request, {}, {.simulating = [](auto, auto) { return false; }});
    EXPECT_EQ(part.counts.simulated, fewest) << "the first batch";
    ASSERT_FALSE(part.ranked.empty());
    EXPECT_LE(part.ranked.size(), 3U) << "fewer where two do the same";
    for (const Ranked& each : part.ranked) EXPECT_FALSE(each.result.has_band());
    for (const Ranked& each : whole.ranked) EXPECT_TRUE(each.result.has_band());
    const Result none =
        search(network, machine, request, {},
               {.screening = [](auto, auto) { return false; }, .simulating = [](auto, auto) { return false; }});
    EXPECT_LT(none.counts.screened, whole.counts.screened);
}

TEST(Search, KeepsToTheLimitsOfTheTraining) {
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    Request request = request_for(64, 8);
    request.devices = {1, 2, 4, 8};
    request.samples = 64e6;
    const Result free = search(network, machine, request);
    ASSERT_FALSE(free.ranked.empty());
    const double hours =
        free.ranked.front().result.step.value * 1e6 / 3600 * static_cast<double>(free.ranked.front().nodes);
    request.limits.node_hours = hours / 1.5;
    for (const Ranked& each : search(network, machine, request).ranked) {
        EXPECT_LE(each.result.step.value * 1e6 / 3600 * static_cast<double>(each.nodes), hours / 1.5) << each.plan;
    }
    request.limits.node_hours.reset();
    request.objective = Objective::node_hours;
    EXPECT_EQ(search(network, machine, request).ranked.front().nodes, 1);
    request.samples = 0;
    request.limits.training = 1_s;
    EXPECT_THAT([&] { (void)search(network, machine, request); },
                ThrowsMessage<InputError>(HasSubstr("give --dataset")));
}

// Whoever calls the search, not only the command line, is told what cannot be asked.
TEST(Search, RefusesWhatCannotBeAsked) {
    const Network network = tower(1, 64);
    const Machine machine = sim::test::four_device_nodes(2);
    const auto refuses = [&](void (*change)(Request&), const char* words) {
        Request request = request_for(64, 2);
        change(request);
        EXPECT_THAT([&] { (void)search(network, machine, request); }, ThrowsMessage<InputError>(HasSubstr(words)));
    };
    refuses([](Request& r) { r.simulated = 0; }, "--top 0: at least 1");
    refuses([](Request& r) { r.simulated = -1; }, "--top -1: at least 1");
    refuses([](Request& r) { r.most.tensor = 0; }, "--max-tensor 0: at least 1");
    refuses([](Request& r) { r.most.expert = 0; }, "--max-expert 0: at least 1");
    refuses([](Request& r) { r.most.pipe = 0; }, "--max-pipe 0: at least 1");
    refuses([](Request& r) { r.variety.chunks = 0; }, "--max-chunks 0: at least 1");
    refuses([](Request& r) { r.devices.clear(); }, "--devices: at least one");
}

TEST(Search, SaysWhyItFindsNone) {
    Request request = request_for(64, 2);
    request.limits.memory = Bytes{1};
    const Result none = search(tower(1, 64), sim::test::four_device_nodes(2), request);
    EXPECT_TRUE(none.ranked.empty());
    EXPECT_THAT(why_none(none), HasSubstr("no plan was found: of "));
    EXPECT_THAT(why_none(none), HasSubstr(to_string(none.least_memory)));
}

}  // namespace
}  // namespace rehearse::search
