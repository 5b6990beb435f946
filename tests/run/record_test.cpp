// SPDX-License-Identifier: Apache-2.0
#include "run/record.hpp"

#include <gtest/gtest.h>

#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

TEST(Recording, IsAlignedToTheClockOfRankZero) {
    Recording recording{1, 2};
    const auto at = [](int milliseconds) { return Clock::time_point{std::chrono::milliseconds{milliseconds}}; };
    recording.add(std::vector<Interval>{{at(1000), at(1500)}});
    recording.add(std::vector<Interval>{{at(2000), at(3000)}});
    // This clock is 1 s ahead at second 1, 2 s ahead at second 3.
    recording.align({1, 1, 3, 2});
    const std::vector<double> expected{0, 0.25, 0.5, 1};
    ASSERT_EQ(recording.times().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(recording.times()[i], expected[i]);
}

TEST(Events, OfTwoIterationsCarryTheirStepsAndTimes) {
    const Schedule schedule = test::schedule_of(test::dropping(), "data", 2, 4);
    const auto& steps = schedule.classes[0].steps;
    std::vector<double> times;
    for (std::size_t i = 0; i < 4 * steps.size(); ++i) times.push_back(10 + static_cast<double>(i));
    const std::vector<Event> events = events_of(schedule, 1, times, 10);
    ASSERT_EQ(events.size(), 2 * steps.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        EXPECT_EQ(event.step, steps[i % steps.size()].name);
        EXPECT_EQ(event.stream, steps[i % steps.size()].stream);
        EXPECT_EQ(event.step, event.layer + ":" + event.pass);
        EXPECT_EQ(event.rank, 1);
        EXPECT_EQ(event.iteration, i < steps.size() ? 0 : 1);
        EXPECT_EQ(event.start.value, 2 * static_cast<double>(i));
        EXPECT_EQ(event.end.value, 2 * static_cast<double>(i) + 1);
    }
}

}  // namespace
}  // namespace rehearse::run
