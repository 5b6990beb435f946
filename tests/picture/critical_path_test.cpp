// SPDX-License-Identifier: Apache-2.0
// What a timeline's end waits for, by times and by the dependencies of its steps.
#include "picture/critical_path.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "picture/lanes.hpp"
#include "picture/slack.hpp"

namespace rehearse::picture {
namespace {

using testing::ElementsAre;

// Two ranks compute 10 and 30, then sum: the sum waits for rank 1, and so does the end.
TEST(ACriticalPath, GoesThroughTheRankThatCameLast) {
    LanesBuilder builder("t", false, 2);
    const auto fast = builder.what({"fast", "", "", 0, 0, 0, Activity::forward});
    const auto slow = builder.what({"slow", "", "", 0, 0, 0, Activity::forward});
    const auto sum = builder.what({"sum", "", "", 0, 8, 0, Activity::collective});
    builder.add(builder.lane(0, Stream::compute, "compute"), 0, 10, fast);
    builder.add(builder.lane(1, Stream::compute, "compute"), 0, 30, slow);
    builder.add(builder.lane(0, Stream::communication, "communication"), 10, 40, sum);
    builder.add(builder.lane(1, Stream::communication, "communication"), 30, 20, sum);
    const Lanes lanes = builder.finish();
    std::vector<std::string> names;
    for (const auto& step : critical_path(lanes))
        names.push_back(lanes.whats[lanes.lanes[step.at.lane].what(step.at.event)].step);
    EXPECT_THAT(names, ElementsAre("slow", "sum", "sum"));
    EXPECT_EQ(partners(lanes, {1, 0}), (std::vector<EventAt>{{3, 0}}));
    EXPECT_EQ(free_slack(lanes, {0, 0}), 0);  // the sum begins at once
    EXPECT_EQ(free_slack(lanes, {1, 0}), 0);  // the end
}

// Two ranks forward (10, 30), backward (10, 10), a sum of gradients behind the first half of the backward pass (20),
// and an update that waits for it; rank 0 also loads (5) for a step that waits for nothing else:
//   rank 0   f 0-10  |        b 40-50 | update 60-70
//   rank 0   load 0-5, then g 30-60 with rank 1 (from when it has come: 40)
//   rank 1   f 0-30  | b 30-40        | g 40-60 | update 60-65
// The end, 70, is late by nothing that rank 1's forward, backward, and the sum are not late by.
TEST(Slack, IsWhatTheStepsDependenciesLeave) {
    LanesBuilder builder("t", false, 2);
    const auto what = [&](const char* step, Activity activity) {
        return builder.what({step, "", "", 0, 0, 0, activity});
    };
    const auto f = what("f", Activity::forward), b = what("b", Activity::backward_data),
               u = what("u", Activity::update);
    const auto g = what("g", Activity::collective), load = what("load", Activity::io);
    for (const std::int64_t rank : {0, 1}) {
        const auto compute = builder.lane(rank, Stream::compute, "compute");
        const auto network = builder.lane(rank, Stream::communication, "communication");
        builder.add(compute, 0, rank == 0 ? 10 : 30, f);
        builder.add(compute, rank == 0 ? 40 : 30, 10, b);
        builder.add(network, rank == 0 ? 10 : 40, rank == 0 ? 50 : 20, g, 0, 5);
        builder.add(compute, 60, rank == 0 ? 10 : 5, u);
    }
    builder.add(builder.lane(0, Stream::io, "io"), 0, 5, load);
    using Step = Dependencies::Step;
    const std::vector<Step> steps{{"load", Stream::io, 0, {}},
                                  {"f", Stream::compute, 0, {}},
                                  {"b", Stream::compute, 0, {0}},
                                  {"g", Stream::communication, 0, {1}},
                                  {"u", Stream::compute, 0, {3}}};
    builder.add(Dependencies{{RankIndex{0}}, steps});
    builder.add(Dependencies{
        {RankIndex{1}},
        {{"b", Stream::compute, 0, {}}, {"g", Stream::communication, 0, {0}}, {"u", Stream::compute, 0, {1}}}});
    const Lanes lanes = builder.finish();
    ASSERT_EQ(lanes.lanes.size(), 5U);  // rank 0: compute, communication, io; rank 1: compute, communication
    ASSERT_TRUE(knows_slack(lanes));
    const Slack slack(lanes);
    EXPECT_EQ(slack.of({0, 0}), 30);  // rank 0's f: the sum begins at 40 and may not be later
    EXPECT_EQ(slack.of({0, 1}), 10);  // its b: the update begins at 60
    EXPECT_EQ(slack.of({0, 2}), 0);
    EXPECT_EQ(slack.of({1, 0}), 0);   // the sum, on both
    EXPECT_EQ(slack.of({2, 0}), 45);  // the load may end when b begins at the latest: 50
    EXPECT_EQ(slack.of({3, 0}), 0);   // rank 1's f
    EXPECT_EQ(slack.of({3, 1}), 0);
    EXPECT_EQ(slack.of({3, 2}), 5);  // its update ends at 65 of 70
    EXPECT_EQ(slack.of({4, 0}), 0);
    std::vector<EventAt> path;
    for (const auto& step : slack.path()) path.push_back(step.at);
    EXPECT_THAT(path, ElementsAre(EventAt{3, 0}, EventAt{3, 1}, EventAt{4, 0}, EventAt{1, 0}, EventAt{0, 2}));
}

// Two iterations of a message that has left before its receiver is ready.
TEST(Slack, OfAMessageThatWaits) {
    LanesBuilder builder("t", false, 2);
    const auto work = builder.what({"work", "", "", 0, 0, 0, Activity::forward});
    const auto message = builder.what({"message", "", "", 0, 8, 0, Activity::point_to_point});
    for (const int i : {0, 1}) {
        builder.add(builder.lane(0, Stream::send_activations, "send"), 100 * i, 10, message, i, 7 + i);
        builder.add(builder.lane(1, Stream::compute, "compute"), 100 * i, 50, work, i);
        builder.add(builder.lane(1, Stream::receive_activations, "receive"), 100 * i + 50, 50, message, i, 7 + i);
    }
    builder.add(Dependencies{{RankIndex{0}, RankIndex{1}},
                             {{"work", Stream::compute, 0, {}}, {"message", Stream::receive_activations, 0, {0}}}});
    const Lanes lanes = builder.finish();
    const Slack slack(lanes);
    EXPECT_EQ(slack.of({0, 0}), 40);  // received from 50 on
    EXPECT_EQ(slack.of({0, 1}), 40);
    EXPECT_EQ(slack.of({1, 0}), 0);
    EXPECT_EQ(slack.of({2, 0}), 0);  // the second iteration waits for it
    EXPECT_EQ(slack.of({2, 1}), 0);
}

// Three messages of one name: only their numbers say that the third on rank 1 is the first of rank 0.
TEST(ACriticalPath, FollowsTheNumberOfAMessage) {
    LanesBuilder builder("t", false, 2);
    const auto work = builder.what({"work", "", "", 0, 0, 0, Activity::forward});
    const auto message = builder.what({"message", "", "", 0, 8, 0, Activity::collective});
    const auto compute = builder.lane(0, Stream::compute, "compute");
    const auto from = builder.lane(0, Stream::communication, "communication");
    const auto to = builder.lane(1, Stream::communication, "communication");
    builder.add(compute, 0, 20, work);
    builder.add(from, 20, 10, message, 0, 7);
    builder.add(from, 30, 10, message, 0, 8);
    builder.add(to, 0, 5, message, 0, 0);
    builder.add(to, 5, 35, message, 0, 8);
    builder.add(to, 40, 10, message, 0, 7);
    const Lanes lanes = builder.finish();
    ASSERT_EQ(lanes.lanes.size(), 3U);
    EXPECT_TRUE(lanes.lanes[0].flows().empty());
    EXPECT_EQ(partners(lanes, {2, 2}), (std::vector<EventAt>{{1, 0}}));
    EXPECT_EQ(partners(lanes, {1, 1}), (std::vector<EventAt>{{2, 1}}));
    std::vector<EventAt> path;
    for (const auto& step : critical_path(lanes)) path.push_back(step.at);
    // The last waits for the one before it on its lane, that for the second send, which waits for the first.
    EXPECT_THAT(path, ElementsAre(EventAt{0, 0}, EventAt{1, 0}, EventAt{1, 1}, EventAt{2, 1}, EventAt{2, 2}));
}

// A pipeline of two stages, as a simulation says it: what is sent and what is received begin together.
// In microseconds:
//   rank 0   f 0-10 | send 10-12            | receive 32-34 | b 34-50
//   rank 1          | receive 10-12 | f 12-20, b 20-32 | send 32-34
// Rank 0 stands still from 12 to 32: its end waits for rank 1 meanwhile.
TEST(ACriticalPath, GoesThroughTheSenderThatAReceiverWaitedFor) {
    LanesBuilder builder("t", false, 2);
    const auto what = [&](const char* step, const char* pass, Activity activity) {
        return builder.what({step, step, pass, 0, 8, 0, activity});
    };
    const auto f = what("f", "forward", Activity::forward), b = what("b", "backward", Activity::backward_data);
    const auto sent = what("sent", "send", Activity::point_to_point);
    const auto received = what("received", "receive", Activity::point_to_point);
    const auto lane = [&](std::int64_t rank, Stream stream) {
        return builder.lane(rank, stream, std::string{to_string(stream)});
    };
    const auto add = [&](std::size_t to, std::int64_t start, std::int64_t length, std::uint32_t event, int flow) {
        builder.add(to, 1000 * start, 1000 * length, event, 0, flow);
    };
    for (const std::int64_t rank : {0, 1}) {
        add(lane(rank, Stream::compute), rank == 0 ? 0 : 12, rank == 0 ? 10 : 8, f, 0);
        add(lane(rank, Stream::compute), rank == 0 ? 34 : 20, rank == 0 ? 16 : 12, b, 0);
        const bool first = rank == 0;
        add(lane(rank, first ? Stream::send_activations : Stream::receive_activations), 10, 2, first ? sent : received,
            1);
        add(lane(rank, first ? Stream::receive_gradients : Stream::send_gradients), 32, 2, first ? received : sent, 2);
    }
    builder.add(Dependencies{{RankIndex{0}},
                             {{"f", Stream::compute, 0, {}},
                              {"sent", Stream::send_activations, 0, {0}},
                              {"received", Stream::receive_gradients, 0, {}},
                              {"b", Stream::compute, 0, {2}}}});
    builder.add(Dependencies{{RankIndex{1}},
                             {{"received", Stream::receive_activations, 0, {}},
                              {"f", Stream::compute, 0, {0}},
                              {"b", Stream::compute, 0, {}},
                              {"sent", Stream::send_gradients, 0, {2}}}});
    const Lanes lanes = builder.finish();
    const auto said = [&](const std::vector<PathStep>& path) {
        std::vector<std::string> words;
        for (const PathStep& step : path) {
            const Lane& on = lanes.lanes[step.at.lane];
            words.push_back(lanes.whats[on.what(step.at.event)].step + std::to_string(on.rank));
            EXPECT_EQ(step.waited, 0) << words.back();
        }
        return words;
    };
    const auto expected = ElementsAre("f0", "sent0", "received1", "f1", "b1", "sent1", "received0", "b0");
    EXPECT_THAT(said(Slack(lanes).path()), expected);
    EXPECT_THAT(said(critical_path(lanes)), expected);
}

}  // namespace
}  // namespace rehearse::picture
