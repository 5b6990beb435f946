// SPDX-License-Identifier: Apache-2.0
// The search against the simulation of every plan there is, on a machine small enough for that.
#include "search/search.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "search/repeats.hpp"
#include "search/store.hpp"
#include "search/wires.hpp"
#include "tests/sim/fixture.hpp"

namespace rehearse::search {
namespace {

using namespace rehearse::literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Dense layers with ReLUs: `wide` ones have more weights than activations.
Network tower(int layers, std::int64_t width) {
    Network network{.name = fmt::format("tower{}", width), .layers = {}};
    network.layers.push_back({"input", Input{{width}}, {}, {width}});
    for (int i = 0; i < layers; ++i) {
        network.layers.push_back(
            {fmt::format("dense{}", i), MatMul{.m = 1, .n = width, .k = width, .bias = false}, {2 * i}, {width}});
        network.layers.push_back(
            {fmt::format("relu{}", i), Activation{Nonlinearity::relu, {width}}, {2 * i + 1}, {width}});
    }
    network.layers.push_back({"loss", SoftmaxLoss{width}, {2 * layers}, {1}});
    return network;
}

Request request_for(std::int64_t batch, int simulated) {
    Request request;
    request.devices = {8};
    request.job.global_batch = batch;
    request.job.optimizer = Optimizer::adam;
    request.simulated = simulated;
    return request;
}

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
    const Machine machine = sim::test::four_device_nodes(2);
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

    double predicted(const std::string& plan) const {
        predict::Job job{.network = network_,
                         .machine = machine_,
                         .plan = schedule::parse_plan(plan),
                         .devices = {8},
                         .global_batch = 32,
                         .optimizer = Optimizer::adam,
                         .mode = sim::Mode::folded};
        predict::follow(job, profile_);
        return predict::predict(job).points.front().figures.time.step.value;
    }
};

TEST_P(UnderFramework, RankedStepsAreWhatPredictGivesAndTheBestIsFound) {
    Request request = request_for(32, 6);
    request.framework = profile_;
    const Result found = search(network_, machine_, request);
    ASSERT_FALSE(found.ranked.empty());
    for (const Ranked& each : found.ranked) EXPECT_DOUBLE_EQ(each.result.step.value, predicted(each.plan)) << each.plan;
    // Whatever the framework has not settled is a plan that its users may write.
    double best = INFINITY;
    for (const Shape& shape : shapes(8, request.most)) {
        for (const Choices& choices : choices_of(shape, 32, request.variety)) {
            if (!profile_.value("zero").empty() && shape.copies() > 1 && choices.zero > 0 &&
                std::to_string(choices.zero) != profile_.value("zero"))
                continue;
            try {
                best = std::min(best, predicted(plan_text(choices)));
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

/// Two blocks of mixtures of four experts, between dense layers.
Network mixture() { return models::load_network("gpt-h1024-a8-l2-v1024-e4@256"); }

// What is screened of meshes with an expert axis is what their schedules hold and take: memory to a tenth, steps not
// below the bound, and the best of all plans is found by simulating few.
TEST(Experts, AreAnAxisOfTheMesh) {
    const Network network = mixture();
    const Machine machine = sim::test::four_device_nodes(2);
    EXPECT_EQ(experts_of(network), 4);
    EXPECT_EQ(experts_of(tower(2, 64)), 1);
    Request request = request_for(16, 12);
    request.variety = {.chunks = 1, .adaptive_updates = false};
    request.most = {.tensor = 2, .pipe = 2};
    std::set<std::int64_t> seen;
    for (const Shape& shape : shapes(8, request.most, {4, 1})) {
        EXPECT_EQ(devices(shape), 8);
        EXPECT_TRUE(shape.expert == 1 || shape.tensor == 1);
        seen.insert(shape.expert);
    }
    EXPECT_EQ(seen, (std::set<std::int64_t>{1, 2, 4}));
    Screen screen{network, machine, request.job};
    double best = INFINITY;
    schedule::Job job = request.job;
    job.devices = 8;
    for (const Shape& shape : shapes(8, request.most, {4, 1})) {
        for (Choices choices : choices_of(shape, 16, request.variety)) {
            if (shape.expert > 1) {
                const std::optional<Estimate> estimate = screen.estimate(choices);
                if (!estimate) continue;
                const Simulated result = simulated(network, machine, job, plan_text(choices), Bytes{1e15});
                if (!result.refusal.empty()) continue;
                SCOPED_TRACE(plan_text(choices));
                EXPECT_NEAR(estimate->memory_bytes / result.memory.value, 1, 0.25);
                EXPECT_GE(result.step.value, *screen.bound(shape) * (1 - 1e-9));
                best = std::min(best, result.step.value);
            } else {
                const Simulated result = simulated(network, machine, job, plan_text(choices), Bytes{1e15});
                if (result.refusal.empty()) best = std::min(best, result.step.value);
            }
        }
    }
    const Result found = search(network, machine, request);
    ASSERT_FALSE(found.ranked.empty());
    EXPECT_LE(found.ranked.front().result.step.value, 1.02 * best);
}

// Where a batch has fewer samples than there are devices, their tokens are shared: memory to a quarter, steps not below
// the bound, and what is found is not slower than any of them.
TEST(Sequences, AreSharedAlongContext) {
    const Network network = models::load_network("gpt-h1024-a8-l2-v1024@256");
    const Machine machine = sim::test::four_device_nodes(2);
    EXPECT_EQ(tokens_of(network), 256);
    EXPECT_EQ(tokens_of(tower(2, 64)), 1);
    Request request = request_for(2, 8);
    request.variety = {.chunks = 1, .adaptive_updates = false};
    request.most = {.tensor = 4, .pipe = 2};
    Screen screen{network, machine, request.job};
    schedule::Job job = request.job;
    job.devices = 8;
    int with_context = 0;
    double best = INFINITY;
    for (const Shape& shape : shapes(8, request.most, {1, 256})) {
        EXPECT_EQ(devices(shape), 8);
        EXPECT_TRUE(shape.context == 1 || shape.tensor == 1);
        if (shape.context == 1) continue;
        for (Choices choices : choices_of(shape, 2, request.variety)) {
            const std::optional<Estimate> estimate = screen.estimate(choices);
            if (!estimate) continue;
            const Simulated result = simulated(network, machine, job, plan_text(choices), Bytes{1e15});
            if (!result.refusal.empty()) continue;
            SCOPED_TRACE(plan_text(choices));
            EXPECT_NEAR(estimate->memory_bytes / result.memory.value, 1, 0.25);
            EXPECT_GE(result.step.value, *screen.bound(shape) * (1 - 1e-9));
            best = std::min(best, result.step.value);
            ++with_context;
        }
    }
    EXPECT_GT(with_context, 10);
    const Result found = search(network, machine, request);
    ASSERT_FALSE(found.ranked.empty());
    EXPECT_LE(found.ranked.front().result.step.value, 1.02 * best);
}

TEST(Repeats, AreTheBlocksOfANetwork) {
    const Network gpt = models::load_network("gpt-h64-a4-l12-v256@32");
    const Repeats found = repeats_of(gpt);
    EXPECT_EQ(found.times, 12);
    // With fewer of them it is the network with fewer layers, but for its name.
    const Network few = with_blocks(gpt, found, 5), built = models::load_network("gpt-h64-a4-l5-v256@32");
    ASSERT_EQ(few.layers.size(), built.layers.size());
    for (std::size_t i = 0; i < few.layers.size(); ++i) {
        EXPECT_EQ(few.layers[i].name, built.layers[i].name);
        EXPECT_EQ(few.layers[i].op, built.layers[i].op);
        EXPECT_EQ(few.layers[i].inputs, built.layers[i].inputs);
        EXPECT_EQ(few.layers[i].weights_of, built.layers[i].weights_of);
    }
    EXPECT_NO_THROW(check(few));
    EXPECT_LE(repeats_of(mixture()).times, 2);
}

// Seven blocks are looked at one by one; of twelve, five stand for all. Costs are straight lines in the blocks.
TEST(Repeats, CostAsMuchAsTheBlocksThemselves) {
    const Machine machine = sim::test::four_device_nodes(2);
    schedule::Job job;
    job.optimizer = Optimizer::adam;
    for (const schedule::Recompute recompute : {schedule::Recompute::none, schedule::Recompute::attention,
                                                schedule::Recompute::blocks, schedule::Recompute::all}) {
        for (const std::int64_t tensor : {1, 2}) {
            const auto costs = [&](int blocks) {
                const Network network = models::load_network(fmt::format("gpt-h64-a4-l{}-v256@32", blocks));
                return Group{network, machine, {}, job, {.tensor = tensor, .recompute = recompute}}.costs(4).value();
            };
            const LayerCosts six = costs(6), seven = costs(7), twelve = costs(12);
            const auto expect_line = [](double a, double b, double c) { EXPECT_NEAR(c, b + 5 * (b - a), 1e-6 * c); };
            expect_line(six.forward_s.back(), seven.forward_s.back(), twelve.forward_s.back());
            expect_line(six.backward_s.back(), seven.backward_s.back(), twelve.backward_s.back());
            expect_line(six.computed_s, seven.computed_s, twelve.computed_s);
            expect_line(six.weights.back(), seven.weights.back(), twelve.weights.back());
            expect_line(six.held_bytes.back(), seven.held_bytes.back(), twelve.held_bytes.back());
            expect_line(six.passing_bytes, seven.passing_bytes, twelve.passing_bytes);
            EXPECT_EQ(twelve.forward_s.size() - seven.forward_s.size(),
                      5 * (seven.forward_s.size() - six.forward_s.size()));
        }
    }
}

TEST(Wires, AreThoseOfTheWholeMachine) {
    const Machine machine = models::load_machine("summit");
    const Shape shape{.data = 8, .tensor = 6, .pipe = 2};
    Wires wires{machine};
    const Line line = wires.piecewise(CollectiveKind::all_gather, shape);
    const sim::Call call{CollectiveKind::all_gather, 1, 1 << 23, DataType::f32, {}};
    const Mesh mesh{{{"pipe", 2}, {"data", 8}, {"tensor", 6}}};
    EXPECT_NEAR(line.at(4.0 * (1 << 23)), sim::collective_time(call, mesh, machine, sim::Mode::folded).value, 1e-12);
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

// Ended in the middle, a search ranks what it has simulated, without bands.
TEST(Search, KeepsWhatItHasWhenItIsEnded) {
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 3);
    const Result whole = search(network, machine, request);
    const Result part = search(network, machine, request, {}, {.simulating = [](auto, auto) { return false; }});
    EXPECT_EQ(part.counts.simulated, 3) << "the first batch";
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

TEST(Store, LetsASearchGoOnAndOthersShareIt) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("search_{}.db", ::getpid());
    std::filesystem::remove(path);
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 6);
    Store first{path, "job"};
    const Result fresh = search(network, machine, request, first.others());
    Store second{path, "job"};
    const Result again = search(network, machine, request, second.others());
    EXPECT_GT(fresh.counts.simulated, 0);
    EXPECT_EQ(again.counts.simulated, 0);
    EXPECT_EQ(again.counts.known, fresh.counts.simulated);
    ASSERT_EQ(again.ranked.size(), fresh.ranked.size());
    for (std::size_t i = 0; i < fresh.ranked.size(); ++i) {
        EXPECT_EQ(again.ranked[i].plan, fresh.ranked[i].plan);
        EXPECT_EQ(again.ranked[i].result.high, fresh.ranked[i].result.high);
    }
    Store another{path, "another job"};
    EXPECT_EQ(another.others().find(fresh.ranked[0].plan, 8), std::nullopt);
    EXPECT_TRUE(another.others().claim("data=8", 8));
    EXPECT_FALSE(Store(path, "another job").others().claim("data=8", 8));
    std::filesystem::remove(path);
}

/// What `work` does in a process that ends without a word, as if it was killed.
template <typename Work>
void in_a_killed_process(const Work& work) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        work();
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
}

// A search that was killed has plans taken that it will never simulate. Who goes on does not wait for it, and ranks
// what a search alone ranks.
TEST(Store, LetsTheNextTakeWhatAKilledSearchHasLeft) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("killed_{}.db", ::getpid());
    std::filesystem::remove(path);
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 6);
    in_a_killed_process([&] {
        Store store{path, "job"};
        Others others = store.others();
        others.put = [](const std::string&, std::int64_t, const Simulated&) { ::_exit(0); };
        search(network, machine, request, others);
    });
    Store next{path, "job"};
    std::vector<std::string> said;
    const Listener listener{.say = [&](std::string_view text) { said.emplace_back(text); }};
    const Result found = search(network, machine, request, next.others(), listener);
    const Result alone = search(network, machine, request);
    EXPECT_THAT(said, testing::Not(testing::Contains(HasSubstr("waiting for"))));
    ASSERT_EQ(found.ranked.size(), alone.ranked.size());
    for (std::size_t i = 0; i < alone.ranked.size(); ++i) EXPECT_EQ(found.ranked[i].plan, alone.ranked[i].plan);
    std::filesystem::remove(path);
}

TEST(Store, WaitsForASearchThatRunsAndMayBeEndedMeanwhile) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("beside_{}.db", ::getpid());
    std::filesystem::remove(path);
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 2);
    Store store{path, "job"};
    Others others = store.others();
    others.find = {};
    others.claim = [](const std::string&, std::int64_t) { return false; };  // all are at others
    int asked = 0;
    std::vector<std::string> said;
    const Listener listener{.say = [&](std::string_view text) { said.emplace_back(text); },
                            .simulating = [&](auto, auto) { return ++asked < 3; }};
    EXPECT_TRUE(search(network, machine, request, others, listener).ranked.empty());
    EXPECT_THAT(said, testing::Contains("waiting for 2 plans of another search"));
    std::filesystem::remove(path);
}

TEST(Store, LeavesFilesOfOthersAlone) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("text_{}.db", ::getpid());
    std::ofstream(path) << std::string(2000, 'x');
    EXPECT_THAT([&] { Store(path, "job"); }, ThrowsMessage<InputError>(HasSubstr("not a file of searched plans")));
    EXPECT_EQ(std::filesystem::file_size(path), 2000U);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace rehearse::search
