// SPDX-License-Identifier: Apache-2.0
#include "calibrate/in_situ.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/shared_cores.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {
namespace {

const Problem first{Activation{Nonlinearity::relu, {100}}, Pass::forward, 4};
const Problem second{Activation{Nonlinearity::relu, {200}}, Pass::forward, 4};

// first, second, first.
Schedule three_steps() {
    Schedule schedule;
    schedule.mesh = {{{"data", 1}}};
    schedule.plan = "data=1";
    RankClass& rank_class = schedule.classes.emplace_back();
    rank_class.part.network.layers = {{"input", Input{{100}}, {}, {100}},
                                      {"a", first.op, {0}, {100}},
                                      {"b", second.op, {1}, {200}},
                                      {"c", first.op, {2}, {100}}};
    int layer = 0;
    for (const Problem& problem : {first, second, first}) {
        ++layer;
        rank_class.steps.push_back({std::string(1, static_cast<char>('a' + layer - 1)),
                                    Stream::compute,
                                    Compute{LayerIndex{layer}, problem, 0},
                                    {}});
    }
    schedule.network = rank_class.part.network;
    return schedule;
}

DeviceClass device() {
    DeviceClass core;
    core.measured[to_string(first)] = {Seconds{1e-3}, 0, 1, "test"};
    core.measured[to_string(second)] = {Seconds{1e-3}, 0, 1, "test"};
    return core;
}

Sample sample(const Problem& problem, double alone = 1e-4) {
    Sample sample;
    sample.problem = problem;
    sample.median = Seconds{alone};
    sample.count = 7;
    return sample;
}

void add(InSituSteps& steps, const Timeline& timeline) {
    std::vector<double> sums = step_sums(three_steps().classes.front(), timeline);
    std::ranges::sort(sums);
    steps.add(three_steps(), three_steps().classes.front(), timeline, device(), Seconds{sums[sums.size() / 2]});
}

// One iteration with these times after the other, and one of ten seconds before them.
Timeline timeline_of(const std::vector<std::array<double, 3>>& iterations) {
    Timeline timeline;
    double now = 0;
    for (std::size_t i = 0; i <= iterations.size(); ++i) {
        for (std::size_t step = 0; step < 3; ++step) {
            Event event;
            event.iteration = static_cast<int>(i);
            event.stream = Stream::compute;
            event.step = std::string(1, static_cast<char>('a' + step));
            event.start = Seconds{now};
            event.end = Seconds{now += i == 0 ? 10.0 : iterations[i - 1][step]};
            timeline.events.push_back(event);
        }
    }
    return timeline;
}

TEST(InSitu, IsTheMeanOfAProblemsPlacesAndNotOfTheFirstIteration) {
    InSituSteps steps;
    add(steps, timeline_of({{1e-3, 5e-3, 3e-3}, {1e-3, 5e-3, 3e-3}, {1e-3, 5e-3, 3e-3}}));
    std::vector<Sample> samples{sample(first, 7e-4), sample(second)};
    put_in_situ(samples, steps.times());
    EXPECT_NEAR(samples[0].median.value, 2e-3, 1e-12);  // 1 ms and 3 ms
    EXPECT_NEAR(samples[1].median.value, 5e-3, 1e-12);
    EXPECT_EQ(samples[0].alone, Seconds{7e-4});
    EXPECT_EQ(samples[0].count, 6);
    EXPECT_NEAR(samples[0].error, 0, 1e-9);
}

// Another process takes 6 ms in each iteration, from another step each time: no median shows it, the sum does.
TEST(InSitu, AddsUpToWhatWholeStepsTook) {
    InSituSteps steps;
    add(steps, timeline_of({{8e-3, 2e-3, 2e-3}, {2e-3, 8e-3, 2e-3}, {2e-3, 2e-3, 8e-3}}));
    std::vector<Sample> samples{sample(first), sample(second)};
    put_in_situ(samples, steps.times());
    EXPECT_NEAR(2 * samples[0].median.value + samples[1].median.value, 12e-3, 1e-12);
    EXPECT_NEAR(samples[1].median.value, 4e-3, 1e-12);
}

TEST(InSitu, OfTwoNetworksIsTheMeanOfBoth) {
    InSituSteps steps;
    add(steps, timeline_of({{1e-3, 5e-3, 3e-3}}));
    add(steps, timeline_of({{4e-3, 7e-3, 4e-3}}));
    std::vector<Sample> samples{sample(first), sample(second)};
    put_in_situ(samples, steps.times());
    EXPECT_NEAR(samples[0].median.value, 3e-3, 1e-12);
    EXPECT_NEAR(samples[1].median.value, 6e-3, 1e-12);
}

TEST(InSitu, StretchesWhatNoStepHasAsOthersOfItsKindAndPass) {
    InSituSteps steps;
    add(steps, timeline_of({{1e-3, 5e-3, 3e-3}}));
    std::vector<Sample> samples{sample({Activation{Nonlinearity::relu, {300}}, Pass::forward, 4}, 1e-3),
                                sample({Activation{Nonlinearity::relu, {300}}, Pass::backward_data, 4}, 1e-3),
                                sample(first, 1e-3), sample(second, 4e-3)};
    put_in_situ(samples, steps.times());
    EXPECT_NEAR(samples[0].median.value, 1e-3 * (2e-3 + 5e-3) / (1e-3 + 4e-3), 1e-15);
    EXPECT_EQ(samples[0].alone, Seconds{1e-3});
    EXPECT_NEAR(samples[0].scaled, 1.4, 1e-12);
    // Ratios of 2 and 1.25 where 1.4 is taken.
    EXPECT_NEAR(samples[0].error, std::hypot(std::log(2 / 1.4), std::log(1.25 / 1.4)) / std::sqrt(2), 1e-12);
    EXPECT_EQ(samples[0].count, 7);
    EXPECT_EQ(samples[1].median, Seconds{1e-3});  // nothing is known of this pass
    EXPECT_EQ(samples[1].scaled, 1);
    EXPECT_EQ(samples[2].scaled, 1);  // it was seen
}

// Kernels of 2 and 4 us take 10 us more where the code is cold: so does, with what it misses itself, a kernel of 6 ms,
// and not five times its own. The nearest is that of 4 us, 10 us for a size of eight are 80 us.
TEST(InSitu, AddsToALongKernelNoMoreThanEightTimesWhatWasMissingInAShortOne) {
    InSituSteps steps;
    add(steps, timeline_of({{12e-6, 14e-6, 12e-6}}));
    std::vector<Sample> samples{sample(first, 2e-6), sample(second, 4e-6),
                                sample({Activation{Nonlinearity::relu, {9000}}, Pass::forward, 4}, 6e-3),
                                sample({Activation{Nonlinearity::relu, {300}}, Pass::forward, 4}, 15e-6)};
    put_in_situ(samples, steps.times());
    EXPECT_NEAR(samples[2].median.value, 6e-3 + 80e-6, 1e-12);
    EXPECT_NEAR(samples[2].error, std::log(1 + 80e-6 / 6e-3), 1e-9) << "nothing else says how far that goes";
    EXPECT_NEAR(samples[3].median.value, 15e-6 * (12 + 14) / (2 + 4), 1e-12) << "as near as this they are alike";
}

// Two networks that do not take twice as long in steps, nor 1.5 times as much longer than each other.
TEST(InSitu, IsContradictedByStepsThatTakeMuchLonger) {
    EXPECT_EQ(contradiction_of_steps({}), "");
    EXPECT_EQ(contradiction_of_steps({{"lenet5", 1.3}, {"resnet32", 1.8}, {"mlp", 0}}), "");
    EXPECT_EQ(contradiction_of_steps({{"lenet5", 1.3}, {"resnet32", 4.6}}),
              "kernels of resnet32 took 4.6 times as long in training steps as by themselves");
    EXPECT_EQ(
        contradiction_of_steps({{"lenet5", 1.1}, {"resnet32", 1.9}}),
        "kernels took 1.9 times as long in training steps of resnet32 as by themselves, and 1.1 times in those of "
        "lenet5");
}

// The median of those of 100 us and more: of two it says nothing.
TEST(InSitu, StretchIsOfLongKernels) {
    const std::map<std::string, InSituTimes> times{{to_string(first), {6e-3, 0, 2, 8}},
                                                   {to_string(second), {5e-3, 0, 1, 4}}};
    std::vector<Sample> samples{sample(first, 1e-3), sample(second, 1e-3)};
    EXPECT_EQ(stretch_in_steps(samples, times), 0);
    samples.push_back(sample(second, 2.5e-3));
    EXPECT_NEAR(stretch_in_steps(samples, times), 3, 1e-12);  // of 3, 5 and 2
    samples[0].median = Seconds{99e-6};
    EXPECT_EQ(stretch_in_steps(samples, times), 0);
}

// Medians of 2, 6 and 4 ms over three blocks, of which that of 18 ms is in the middle.
TEST(InSitu, DividesStepsByAllBlocksAndIsAsLongAsTheOneInTheMiddle) {
    InSituSteps steps;
    steps.add(three_steps(), three_steps().classes.front(),
              {{Seconds{30e-3}, timeline_of({{9e-3, 6e-3, 9e-3}})},
               {Seconds{18e-3}, timeline_of({{2e-3, 7e-3, 4e-3}})},
               {Seconds{12e-3}, timeline_of({{1e-3, 5e-3, 3e-3}})}},
              device());
    std::vector<Sample> samples{sample(first), sample(second)};
    put_in_situ(samples, steps.times());
    EXPECT_NEAR(samples[0].median.value, (2e-3 + 4e-3) / 2 * 1.5, 1e-12);
    EXPECT_NEAR(samples[1].median.value, 6e-3 * 1.5, 1e-12);
}

TEST(InSitu, AddsUpToTheSlowestRankWhereThatIsTheWhole) {
    InSituSteps steps;
    steps.add(three_steps(), three_steps().classes.front(), timeline_of({{1e-3, 5e-3, 3e-3}}), device(),
              Seconds{18e-3});
    std::vector<Sample> samples{sample(first), sample(second)};
    put_in_situ(samples, steps.times());
    EXPECT_NEAR(samples[0].median.value, 4e-3, 1e-12);
    EXPECT_NEAR(samples[1].median.value, 10e-3, 1e-12);
}

TEST(InSitu, NeedsTwoIterations) {
    InSituSteps steps;
    EXPECT_THROW(add(steps, timeline_of({})), InputError);
}

// One rank has the first problem in two places, which take 4 ms in all, another rank in two that take 8 ms.
TEST(InSitu, IsTheMeanOverTheRanksThatHaveTheProblem) {
    InSituSteps one, other, both;
    add(one, timeline_of({{1e-3, 5e-3, 3e-3}}));
    add(other, timeline_of({{2e-3, 5e-3, 6e-3}}));
    for (const InSituSteps* rank : {&one, &other}) both.add(rank->text());
    std::vector<Sample> samples{sample(first), sample(second)};
    put_in_situ(samples, both.times());
    EXPECT_NEAR(samples[0].median.value, 3e-3, 1e-12);
    EXPECT_NEAR(samples[1].median.value, 5e-3, 1e-12);
    EXPECT_EQ(samples[0].count, 4);
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SharedCores, AreThoseOfRanksOfOneKernelWithFewerCoresThanRanks) {
    const std::vector<std::string> pinned{"k:0", "k:1", "k:0", "k:1"};
    const std::vector<SharedCores> pairs = shared_cores(pinned, "test");
    EXPECT_THAT(pairs, ElementsAre(SharedCores{1, {0, 2}, "test"}, SharedCores{1, {1, 3}, "test"}));
    EXPECT_EQ(share_of_core(pairs, 3), 0.5);
    const std::vector<std::string> free{"k:0,5", "k:0,5", "k:0,5"};
    EXPECT_THAT(shared_cores(free, "test"), ElementsAre(SharedCores{2, {0, 1, 2}, "test"}));
    EXPECT_DOUBLE_EQ(share_of_core(shared_cores(free, "test"), 1), 2.0 / 3);
}

TEST(SharedCores, AreNoneWhereEachRankHasOne) {
    const std::vector<std::string> own{"k:0", "k:1"}, two{"k:0,1", "k:0,1"}, hosts{"k:0", "l:0"};
    for (const auto& sets : {own, two, hosts}) EXPECT_THAT(shared_cores(sets, "test"), IsEmpty());
    EXPECT_EQ(share_of_core({}, 0), 1);
}

}  // namespace
}  // namespace rehearse::calibrate
