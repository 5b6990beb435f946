// SPDX-License-Identifier: Apache-2.0
#include "core/timeline.hpp"

#include <gtest/gtest.h>

#include "core/iterations.hpp"

namespace rehearse {
namespace {

Event event(int iteration, std::int64_t rank, Stream stream, double start, double end) {
    Event e;
    e.iteration = iteration;
    e.rank = RankIndex{rank};
    e.stream = stream;
    e.start = Seconds{start};
    e.end = Seconds{end};
    return e;
}

//            0    1    2    3    4    5    6    7    8    9
// compute    #########      ####                     #####
// comm            #######        #######
// io                                      ###
TEST(Summarize, SplitsAStepIntoPartsThatAddUp) {
    Timeline t;
    t.events = {event(0, 0, Stream::compute, 0, 2),         event(0, 0, Stream::compute, 3, 4),
                event(0, 0, Stream::compute, 9, 10),        event(0, 0, Stream::communication, 1, 2.5),
                event(0, 0, Stream::communication, 4, 5.5), event(0, 0, Stream::io, 6, 7)};
    const Summary s = summarize(t);
    EXPECT_DOUBLE_EQ(s.step.value, 10);
    EXPECT_DOUBLE_EQ(s.compute.value, 4);
    EXPECT_DOUBLE_EQ(s.exposed_comm.value, 0.5 + 1.5);
    EXPECT_DOUBLE_EQ(s.io_wait.value, 1);
    EXPECT_DOUBLE_EQ(s.rest.value, 3);
}

TEST(Summarize, TakesTheMedianIterationAndTheLastRank) {
    Timeline t;
    t.events = {event(0, 0, Stream::compute, 0, 50),  // warm-up: left out
                event(1, 0, Stream::compute, 50, 60), event(1, 1, Stream::compute, 50, 61),
                event(2, 0, Stream::compute, 61, 80), event(3, 0, Stream::compute, 80, 92)};
    EXPECT_DOUBLE_EQ(summarize(t).step.value, 12);  // of 11, 19, 12
    EXPECT_EQ(summarize(Timeline{}).step, Seconds{0});
    const Iterations middle = iterations(t);  // from 80 to 92
    EXPECT_EQ(middle.middle, 3);
    EXPECT_EQ(middle.end - middle.start, summarize(t).step);
    EXPECT_EQ(to_string(middle), "median of 3 iterations (the first, a warm-up, left out)");
    EXPECT_EQ(iterations(Timeline{}).count, 0);
}

// Two ranks of which the first begins each step 2 s before the other one ends the step before: ten seconds a step, not
// twelve, and no more work in it than fits.
TEST(Summarize, StepsThatOverlapFollowEachOther) {
    Timeline t;
    for (int i = 0; i < 4; ++i) {
        t.events.push_back(event(i, 0, Stream::compute, 10 * i, 10 * i + 10));
        t.events.push_back(event(i, 1, Stream::compute, 10 * i + 2, 10 * i + 12));
    }
    const Summary s = summarize(t);
    EXPECT_DOUBLE_EQ(s.step.value, 10);
    EXPECT_DOUBLE_EQ(s.compute.value, 10);
    EXPECT_DOUBLE_EQ(s.rest.value, 0);
    const Iterations middle = iterations(t);
    EXPECT_EQ(middle.end - middle.start, Seconds{10});
}

// A rank that only computes does a step a second; one that waits two seconds for weights, too, a step in three. A mean
// step of both takes 2 / (1 + 1/3) seconds, and of the 4/3 steps a second a quarter wait.
TEST(Steady, PartsOfUnlikeRanksAddUpToTheirMeanStep) {
    Timeline t;
    for (int i = 0; i < 8; ++i) {
        t.events.push_back(event(i, 0, Stream::compute, i, i + 1));
        t.events.push_back(event(i, 1, Stream::compute, 3 * i, 3 * i + 1));
        t.events.push_back(event(i, 1, Stream::communication, 3 * i + 1, 3 * i + 3));
    }
    const Summary s = steady(t, 2);
    EXPECT_DOUBLE_EQ(s.step.value, 1.5);
    EXPECT_DOUBLE_EQ(s.compute.value, 1);
    EXPECT_DOUBLE_EQ(s.exposed_comm.value, 0.5);
    EXPECT_NEAR(s.rest.value, 0, 1e-12);
    EXPECT_EQ(steady(Timeline{}, 2).step, Seconds{0});
}

// The same two as workers of a server, rank 2, whose events reach from the first start to the last end of all: workers
// drift apart, so that from the first start of an iteration to its last end is no step.
TEST(Summarize, OfWorkersOfAServerTakesTheirMeanStep) {
    Timeline t;
    const auto add = [&](int iteration, std::int64_t rank, Stream stream, const char* pass, double start, double end) {
        t.events.push_back(event(iteration, rank, stream, start, end));
        t.events.back().pass = pass;
    };
    for (int i = 0; i < 8; ++i) {
        add(i, 0, Stream::compute, "forward", i, i + 1);
        add(i, 0, Stream::send_gradients, "trade", i, i + 1);
        add(i, 1, Stream::compute, "forward", 3 * i, 3 * i + 1);
        add(i, 1, Stream::send_gradients, "trade", 3 * i + 1, 3 * i + 3);
        add(i, 2, Stream::compute, "update", i, i + 0.5);
        add(i, 2, Stream::compute, "update", 3 * i + 1, 3 * i + 1.5);
    }
    EXPECT_EQ(workers_of_servers(t), 2);
    const Summary s = summarize(t);
    EXPECT_DOUBLE_EQ(s.step.value, 1.5);
    EXPECT_DOUBLE_EQ(s.compute.value, 1);
    EXPECT_DOUBLE_EQ(s.exposed_comm.value, 0.5);
    const Iterations middle = iterations(t);  // of the first worker
    EXPECT_EQ(middle.count, 7);
    EXPECT_EQ(middle.end - middle.start, Seconds{1});
    EXPECT_EQ(
        to_string(middle),
        "median of 7 iterations (the first, a warm-up, left out), its step the mean of 2 workers, which do not wait "
        "for each other");
    EXPECT_EQ(workers_of_servers(Timeline{}), std::nullopt);
}

// The first of two workers does four steps of 1 s beside the other one, and six of 3 s after that has ended.
TEST(Iterations, OfWorkersOfAServerAreOfTheTimeInWhichAllTrain) {
    Timeline t;
    const auto add = [&](int iteration, std::int64_t rank, double start, double end) {
        t.events.push_back(event(iteration, rank, Stream::compute, start, end));
        t.events.back().pass = "trade";
    };
    for (int i = 0; i < 4; ++i) add(i, 0, i, i + 1), add(i, 1, i, i + 1);
    for (int i = 4; i < 10; ++i) add(i, 0, 4 + 3 * (i - 4), 7 + 3 * (i - 4));
    const Iterations middle = iterations(t);
    EXPECT_EQ(middle.count, 9);
    EXPECT_LT(middle.middle, 4);
    EXPECT_EQ(middle.end - middle.start, Seconds{1});
}

// One iteration alone, as a rank reports it while it trains: it begins where its first event does.
TEST(Steady, OfOneLaterIterationBeginsWithIt) {
    Timeline t;
    t.events = {event(5, 0, Stream::compute, 50, 53), event(5, 0, Stream::communication, 53, 54)};
    EXPECT_DOUBLE_EQ(steady(t, 1).step.value, 4);
}

// Four steps of one rank, of 1, 2, 3 and 4 s, and a fifth one of a server: the first quarter of four is left out.
TEST(Steady, StepsGoFromEndToEnd) {
    Timeline t;
    for (const auto& [iteration, end] : {std::pair{0, 1}, std::pair{1, 3}, std::pair{2, 6}, std::pair{3, 10}}) {
        t.events.push_back(event(iteration, 0, Stream::compute, end - 0.5, end));
        t.events.push_back(event(iteration, 1, Stream::compute, end - 0.5, end + 9));
    }
    EXPECT_EQ(steady_steps(t, 1), (std::vector{Seconds{2}, Seconds{3}, Seconds{4}}));
    EXPECT_DOUBLE_EQ(steady(t, 1).step.value, 3) << "their mean";
}

}  // namespace
}  // namespace rehearse
