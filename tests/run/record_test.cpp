// SPDX-License-Identifier: Apache-2.0
#include "run/record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

TEST(Recording, IsAlignedToTheClockOfRankZero) {
    Recording recording{{0.0}, 2};
    const auto at = [](int milliseconds) { return Clock::time_point{std::chrono::milliseconds{milliseconds}}; };
    recording.add(std::vector<Interval>{{at(1000), at(1500)}});
    recording.add(std::vector<Interval>{{at(2000), at(3000)}});
    // This clock is 1 s ahead at second 1, 2 s ahead at second 3.
    recording.align({1, 1, 3, 2});
    const std::vector<double> expected{0, 0.25, 0.5, 1};
    ASSERT_EQ(recording.times().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(recording.times()[i], expected[i]);
}

TEST(Recording, OfALongTrainingKeepsItsLastIterations) {
    const int more = 7, all = Recording::most_iterations + more;
    Recording recording{{0.0, 0.0}, all};
    const auto at = [](int seconds) { return Clock::time_point{std::chrono::seconds{seconds}}; };
    for (int i = 0; i < all; ++i)
        recording.add(std::vector<Interval>{{at(4 * i), at(4 * i + 1)}, {at(4 * i + 2), at(4 * i + 3)}});
    recording.align({0, 0, 1, 0});
    EXPECT_EQ(recording.first_iteration(), more);
    ASSERT_EQ(recording.times().size(), 4U * Recording::most_iterations);
    for (std::size_t i = 0; i < recording.times().size(); ++i)
        EXPECT_DOUBLE_EQ(recording.times()[i], 4.0 * more + static_cast<double>(i));
}

// A training that goes on from a checkpoint records its first steps under their own numbers.
TEST(Recording, CountsTheStepsOfTheTraining) {
    Recording recording{{0.0}, 2};
    recording.start_at(40);
    recording.add(std::vector<Interval>{{}});
    EXPECT_EQ(recording.first_iteration(), 40);
    for (int i = 0; i < Recording::most_iterations; ++i) recording.add(std::vector<Interval>{{}});
    recording.align({0, 0, 1, 0});
    EXPECT_EQ(recording.first_iteration(), 41);
}

double expected_bytes(const Step& step) {
    const auto of = [](const Problem& p) { return bytes_moved(p.op, p.pass, p.type, p.batch).value; };
    if (const auto* compute = std::get_if<Compute>(&step.action)) return of(compute->problem);
    return of(std::get<Update>(step.action).problem);
}

TEST(Events, OfTwoIterationsCarryTheirStepsAndTimes) {
    const Schedule schedule = test::schedule_of(test::dropping(), "data", 2, 4);
    const auto& steps = schedule.classes[0].steps;
    std::vector<double> times;
    for (std::size_t i = 0; i < 4 * steps.size(); ++i) times.push_back(10 + static_cast<double>(i));
    std::vector<double> sent(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) sent[i] = static_cast<double>(1000 + i);
    const std::vector<Event> events = events_of(schedule, RankIndex{1}, sent, times, 10);
    ASSERT_EQ(events.size(), 2 * steps.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        EXPECT_EQ(event.step, steps[i % steps.size()].name);
        EXPECT_EQ(event.stream, steps[i % steps.size()].stream);
        EXPECT_EQ(event.step, event.layer + ":" + event.pass);
        EXPECT_EQ(event.rank, 1);
        if (is_communicator(event.stream)) {
            EXPECT_EQ(event.bytes.value, sent[i % steps.size()]);
        } else {
            EXPECT_EQ(event.bytes.value, expected_bytes(steps[i % steps.size()]));
        }
        EXPECT_EQ(event.iteration, i < steps.size() ? 0 : 1);
        EXPECT_EQ(event.start.value, 2 * static_cast<double>(i));
        EXPECT_EQ(event.end.value, 2 * static_cast<double>(i) + 1);
    }
}

// Of two stages: when the first message's events, at the sender and at the receiver, begin and end.
std::pair<Event, Event> met(std::pair<double, double> sent, std::pair<double, double> received) {
    const Schedule schedule = test::schedule_of(test::branches(), "pipe=2:microbatches=1", 2, 2);
    const auto is = [](Stream stream) { return [stream](const Event& event) { return event.stream == stream; }; };
    std::vector<Event> events;
    for (RankIndex rank{0}; rank < 2; ++rank) {
        const std::size_t steps = schedule.classes.at(static_cast<std::size_t>(rank)).steps.size();
        std::vector<double> times;
        for (std::size_t i = 0; i < steps; ++i) {
            times.insert(times.end(),
                         {rank == 0 ? sent.first : received.first, rank == 0 ? sent.second : received.second});
        }
        std::ranges::move(events_of(schedule, rank, std::vector<double>(steps), times, 0), std::back_inserter(events));
    }
    meet(schedule, events);
    return {*std::ranges::find_if(events, is(Stream::send_activations)),
            *std::ranges::find_if(events, is(Stream::receive_activations))};
}

TEST(Transfers, BeginWhenBothEndsHaveCome) {
    const auto [sent, received] = met({2, 5}, {1, 6});
    EXPECT_EQ(sent.start, Seconds{2});
    EXPECT_EQ(received.start, Seconds{2});
    const auto [waiting, late] = met({1, 5}, {3, 6});
    EXPECT_EQ(waiting.start, Seconds{3});
    EXPECT_EQ(late.start, Seconds{3});
}

TEST(Transfers, ThatWereBufferedKeepTheirTimes) {
    const auto [sent, received] = met({1, 2}, {4, 5});
    EXPECT_EQ(sent.start, Seconds{1});
    EXPECT_EQ(sent.end, Seconds{2});
    EXPECT_EQ(received.start, Seconds{4});
}

}  // namespace
}  // namespace rehearse::run
