// SPDX-License-Identifier: Apache-2.0
#include "run/record.hpp"

#include <gtest/gtest.h>

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
    const std::vector<Event> events = events_of(schedule, 1, sent, times, 10);
    ASSERT_EQ(events.size(), 2 * steps.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        EXPECT_EQ(event.step, steps[i % steps.size()].name);
        EXPECT_EQ(event.stream, steps[i % steps.size()].stream);
        EXPECT_EQ(event.step, event.layer + ":" + event.pass);
        EXPECT_EQ(event.rank, 1);
        if (event.stream == Stream::communication) {
            EXPECT_EQ(event.bytes.value, sent[i % steps.size()]);
        } else {
            EXPECT_EQ(event.bytes.value, expected_bytes(steps[i % steps.size()]));
        }
        EXPECT_EQ(event.iteration, i < steps.size() ? 0 : 1);
        EXPECT_EQ(event.start.value, 2 * static_cast<double>(i));
        EXPECT_EQ(event.end.value, 2 * static_cast<double>(i) + 1);
    }
}

}  // namespace
}  // namespace rehearse::run
