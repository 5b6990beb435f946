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

}  // namespace
}  // namespace rehearse
