// SPDX-License-Identifier: Apache-2.0
// The measured timeline has the structure of the schedule. Run under mpirun with 1, 2 and 4 ranks.
#include "core/timeline.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;

struct Measured {
    Schedule schedule;
    Timeline timeline;
};

Measured measure(const Communicator& world, const Network& network, std::string_view plan, std::int64_t batch,
                 int steps) {
    Schedule schedule = test::schedule_of(network, plan, world.size(), batch);
    Timeline timeline = train_on(world, schedule, {.steps = steps}, {}, {}).timeline;
    return {std::move(schedule), std::move(timeline)};
}

TEST(MeasuredTimeline, HasEachStepOnceAnIterationOnEachRank) {
    const Communicator world = Communicator::world();
    const auto [schedule, timeline] = measure(world, models::load_network("lenet5"), "data:bucket=50kB", 4, 3);
    std::map<std::tuple<int, std::int64_t, std::string>, int> seen;
    for (const Event& event : timeline.events) ++seen[{event.iteration, event.rank, event.step}];
    EXPECT_THAT(seen, testing::Each(testing::Pair(testing::_, 1)));
    const std::size_t ranks = world.rank() == 0 ? static_cast<std::size_t>(world.size()) : 1;
    EXPECT_EQ(seen.size(), 3 * ranks * schedule.classes[0].steps.size());
    EXPECT_EQ(timeline.ranks, world.size());
    EXPECT_TRUE(timeline.measured);
    EXPECT_THAT(timeline.title, testing::HasSubstr("lenet5"));
    if (world.rank() != 0) {
        for (const Event& event : timeline.events) ASSERT_EQ(event.rank, world.rank());
    }
}

TEST(MeasuredTimeline, IsOrderedAndStepsOfAStreamFollowEachOther) {
    const Communicator world = Communicator::world();
    const auto [schedule, timeline] = measure(world, models::load_network("lenet5"), "data:bucket=50kB", 4, 3);
    ASSERT_FALSE(timeline.events.empty());
    double first = timeline.events.front().start.value;
    for (std::size_t i = 1; i < timeline.events.size(); ++i) {
        const Event& a = timeline.events[i - 1];
        const Event& b = timeline.events[i];
        EXPECT_LE(std::tie(a.iteration, a.rank, a.start), std::tie(b.iteration, b.rank, b.start));
        first = std::min(first, b.start.value);
    }
    EXPECT_EQ(first, 0);
    std::map<std::pair<std::int64_t, Stream>, std::vector<Event>> streams;
    for (const Event& event : timeline.events) streams[{event.rank, event.stream}].push_back(event);
    for (const auto& [where, events] : streams) {
        for (std::size_t i = 0; i < events.size(); ++i) {
            EXPECT_LE(events[i].start, events[i].end);
            if (i > 0) {
                EXPECT_LE(events[i - 1].end, events[i].start);
            }
        }
    }
}

TEST(MeasuredTimeline, StepsStartAfterTheStepsTheyWaitFor) {
    const Communicator world = Communicator::world();
    const auto [schedule, timeline] = measure(world, models::load_network("lenet5"), "data:bucket=50kB", 4, 2);
    std::map<std::tuple<int, std::int64_t, std::string>, const Event*> at;
    for (const Event& event : timeline.events) at[{event.iteration, event.rank, event.step}] = &event;
    const auto& steps = schedule.classes[0].steps;
    for (const Event& event : timeline.events) {
        const auto step = std::ranges::find(steps, event.step, &Step::name);
        for (const int before : step->after) {
            const auto& name = steps[static_cast<std::size_t>(before)].name;
            EXPECT_LE((at[{event.iteration, event.rank, name}]->end), event.start) << name << " before " << event.step;
        }
    }
}

TEST(MeasuredTimeline, SaysWhatEachStepWas) {
    const Communicator world = Communicator::world();
    const auto [schedule, timeline] = measure(world, models::load_network("lenet5"), "data", 4, 1);
    const auto find = [&, &events = timeline.events](std::string_view name) {
        return *std::ranges::find(events, name, &Event::step);
    };
    const Event forward = find("fc1:forward");
    EXPECT_EQ(forward.layer, "fc1");
    EXPECT_EQ(forward.pass, "forward");
    EXPECT_EQ(forward.stream, Stream::compute);
    EXPECT_EQ(forward.flops.value, 4 * 120 * (2 * 400 + 1));
    const Event update = find("bucket0:update");
    EXPECT_EQ(update.layer, "bucket0");
    EXPECT_EQ(update.pass, "update");
    EXPECT_EQ(update.flops.value, 6 * 61706);
    if (world.size() == 1) return;
    const Event sum = find("bucket0:allreduce");
    EXPECT_EQ(sum.layer, "bucket0");
    EXPECT_EQ(sum.pass, "allreduce");
    EXPECT_EQ(to_string(sum.stream), "communication(data)");
    // A ring: each rank sends its share 2 (n - 1) times; 61706 is no multiple of 4, so that shares differ by an
    // element.
    const auto n = static_cast<double>(world.size());
    EXPECT_NEAR(sum.bytes.value, 4 * 2 * (n - 1) * 61706 / n, 4 * 2 * (n - 1));
}

TEST(MeasuredTimeline, ShowsCommunicationDuringTheBackwardPass) {
    const Communicator world = Communicator::world();
    if (world.size() == 1) GTEST_SKIP() << "needs an all-reduce";
    const auto [schedule, timeline] = measure(world, models::load_network("resnet32"), "data:bucket=20kB", 4, 3);
    ASSERT_GT(schedule.classes[0].part.buckets.size(), 20U);
    for (int iteration = 0; iteration < 3; ++iteration) {
        double first_sum = 1e9, last_backward = 0;
        int beside = 0;  // all-reduces during which some compute step ran
        for (const Event& event : timeline.events) {
            if (event.iteration != iteration || event.rank != world.rank()) continue;
            if (event.pass == "allreduce") first_sum = std::min(first_sum, event.start.value);
            if (event.pass.starts_with("backward")) last_backward = std::max(last_backward, event.end.value);
            if (event.pass != "allreduce") continue;
            beside += std::ranges::any_of(timeline.events, [&](const Event& other) {
                return other.rank == event.rank && other.stream == Stream::compute && other.start < event.end &&
                       event.start < other.end;
            });
        }
        EXPECT_LT(first_sum, last_backward);
        EXPECT_GT(beside, 0);
    }
}

TEST(MeasuredTimeline, IsEmptyWhenNothingIsToBeRecorded) {
    const Communicator world = Communicator::world();
    const Schedule schedule = test::schedule_of(test::dropping(), "data", world.size(), 4);
    const Result result = train_on(world, schedule, {.steps = 2, .record = false}, {}, {});
    EXPECT_TRUE(result.timeline.events.empty());
    EXPECT_EQ(result.steps.size(), 2U);
}

}  // namespace
}  // namespace rehearse::run
