// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/orders.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace rehearse::schedule {
namespace {

std::string picture(Order (*order)(StageIndex, PipelineShape), PipelineShape shape) {
    std::string rows;
    for (int stage = 0; stage < shape.stages; ++stage)
        rows += draw(order(StageIndex{stage}, shape), shape.chunks) + "\n";
    return rows;
}

TEST(OneFOneB, TwoStagesDrawnByHand) {
    EXPECT_EQ(picture(one_f_one_b, {.stages = 2, .micro_batches = 4}),
              "F0 F1 B0 F2 B1 F3 B2 B3\n"
              "F0 B0 F1 B1 F2 B2 F3 B3\n");
}

TEST(OneFOneB, FourStagesAsInNarayanan2021Figure3) {
    EXPECT_EQ(picture(one_f_one_b, {.stages = 4, .micro_batches = 8}),
              "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7\n"
              "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7\n"
              "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7\n"
              "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7\n");
}

// PipeDream's 15-1 and the like: a copy begins as many micro-batches as keep all ranks behind it busy.
TEST(OneFOneB, OfUnlikeNumbersOfCopiesDrawnByHand) {
    const std::vector<int> two_and_one{2, 1}, fifteen_and_one{15, 1}, one_and_three{1, 3};
    const auto order = [](const std::vector<int>& copies, int stage, int each) {
        return draw(one_f_one_b(StageIndex{stage}, {.stages = 2, .micro_batches = each, .copies = copies}));
    };
    EXPECT_EQ(order(two_and_one, 0, 3), "F0 F1 B0 F2 B1 B2");
    EXPECT_EQ(order(two_and_one, 1, 3), "F0 B0 F1 B1 F2 B2");
    EXPECT_EQ(order(fifteen_and_one, 0, 3), order(two_and_one, 0, 3));
    EXPECT_EQ(order(one_and_three, 0, 5), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
    EXPECT_EQ(order(one_and_three, 1, 2), "F0 B0 F1 B1");
}

TEST(GPipe, ThreeStagesDrawnByHand) {
    EXPECT_EQ(picture(gpipe, {.stages = 3, .micro_batches = 2}), "F0 F1 B0 B1\nF0 F1 B0 B1\nF0 F1 B0 B1\n");
}

TEST(Interleaved, TwoStagesOfTwoChunksDrawnByHand) {
    EXPECT_EQ(picture(interleaved, {.stages = 2, .micro_batches = 4, .chunks = 2}),
              "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a\n"
              "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a\n");
}

// Figure 4 of Narayanan et al. 2021: the first device, until its first two backwards.
TEST(Interleaved, FourStagesAsInNarayanan2021Figure4) {
    const std::string first = draw(interleaved(StageIndex{0}, {.stages = 4, .micro_batches = 8, .chunks = 2}), 2);
    EXPECT_TRUE(first.starts_with("F0a F1a F2a F3a F0b F1b F2b F3b F4a F5a F6a B0b F7a B1b ")) << first;
}

/// When each item ends if a forward of one chunk takes `forward`, a backward `backward`, and messages nothing: an item
/// waits for its stage and for the neighbour that feeds it.
double makespan(Order (*order)(StageIndex, PipelineShape), PipelineShape shape, double forward, double backward) {
    std::map<std::tuple<bool, int, int>, double> ends;  // of (forward, micro-batch, piece)
    std::vector<Order> orders;
    for (int stage = 0; stage < shape.stages; ++stage) orders.push_back(order(StageIndex{stage}, shape));
    std::vector<std::size_t> next(orders.size());
    std::vector<double> free(orders.size());
    const int last = shape.stages * shape.chunks - 1;
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < orders.size(); ++s) {
            if (next[s] == orders[s].size()) continue;
            const Item& item = orders[s][next[s]];
            const int piece = item.chunk * shape.stages + static_cast<int>(s);
            double ready = 0;
            if (item.forward ? piece > 0 : true) {
                const auto needed = item.forward    ? std::tuple{true, item.micro_batch, piece - 1}
                                    : piece == last ? std::tuple{true, item.micro_batch, piece}
                                                    : std::tuple{false, item.micro_batch, piece + 1};
                if (!ends.contains(needed)) continue;
                ready = ends[needed];
            }
            free[s] = std::max(free[s], ready) + (item.forward ? forward : backward);
            ends[{item.forward, item.micro_batch, piece}] = free[s];
            ++next[s];
            moved = true;
        }
    }
    for (std::size_t s = 0; s < orders.size(); ++s)
        EXPECT_EQ(next[s], orders[s].size()) << "stage " << s << " is stuck";
    return *std::ranges::max_element(free);
}

// Each update is of weights that all stages have: p stages cost p forwards and p backwards a micro-batch.
TEST(OneByOne, EmptiesThePipelineAfterEachMicroBatch) {
    EXPECT_EQ(draw(one_by_one({2, 3, 1})), "F0 B0 F1 B1 F2 B2");
    EXPECT_EQ(draw(one_by_one({2, 2, 2}), 2), "F0a F0b B0b B0a F1a F1b B1b B1a");
    const auto order = [](StageIndex, PipelineShape shape) { return one_by_one(shape); };
    for (const int p : {1, 2, 4}) EXPECT_EQ(makespan(order, {p, 5}, 1, 2), 3.0 * 5 * p) << p << " stages";
}

// Whole numbers throughout, so that equality is exact: each of p - 1 stages costs one forward and one backward more.
TEST(AnyPipeline, BubbleIsTheOneOfTheTheory) {
    for (const int p : {1, 2, 3, 4, 8}) {
        for (const int m : {1, 2, 4, 8, 16, 33}) {
            EXPECT_EQ(makespan(gpipe, {p, m}, 1, 2), 3.0 * (m + p - 1)) << p << " stages, " << m;
            EXPECT_EQ(makespan(one_f_one_b, {p, m}, 1, 2), 3.0 * (m + p - 1)) << p << " stages, " << m;
            for (const int v : {2, 3, 4}) {
                if (m % p != 0) continue;
                // A chunk costs 1/v of a stage: the bubble of (p - 1) chunks instead of stages.
                EXPECT_EQ(makespan(interleaved, {p, m, v}, 1, 2), 3.0 * (m * v + p - 1))
                    << p << " stages, " << m << ", " << v;
            }
        }
    }
}

TEST(AnyPipeline, RunsEachPassOnceAndForwardFirst) {
    for (const PipelineStrategy& strategy : pipeline_strategies()) {
        for (const int p : {1, 2, 5}) {
            const int v = strategy.name == "interleaved" ? 3 : 1;
            const PipelineShape shape{p, 2 * p, v};
            for (int stage = 0; stage < p; ++stage) {
                std::map<std::pair<int, int>, std::string> seen;
                for (const Item& item : strategy.order(StageIndex{stage}, shape)) {
                    seen[{item.micro_batch, item.chunk}] += item.forward ? 'F' : 'B';
                }
                EXPECT_EQ(static_cast<int>(seen.size()), shape.micro_batches * v) << strategy.name;
                for (const auto& [of, passes] : seen) EXPECT_EQ(passes, "FB") << strategy.name;
            }
        }
    }
}

TEST(OneFOneB, HoldsNoMoreMicroBatchesThanStagesFromHere) {
    for (int stage = 0; stage < 4; ++stage) {
        EXPECT_EQ(most_in_flight(one_f_one_b(StageIndex{stage}, {4, 16}), 1), 4 - stage);
        EXPECT_EQ(most_in_flight(gpipe(StageIndex{stage}, {4, 16}), 1), 16);
    }
}

// Where the copies of a stage gather its weights together: 2, 3 and 1 of them have 3, 2 and 6 of six micro-batches.
TEST(OneFOneB, OfCopiesThatWorkTogetherTakesWholeTurnsAsOne) {
    const std::vector<int> copies{2, 3, 1};
    const auto order = [&](int stage, int micro_batches) {
        return draw(one_f_one_b(StageIndex{stage}, {3, micro_batches, 1, copies, true}), 1);
    };
    EXPECT_EQ(order(0, 6), "F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5");
    EXPECT_EQ(order(1, 6), "F0 F1 F2 F3 B0 B1 F4 F5 B2 B3 B4 B5");
    EXPECT_EQ(order(2, 12), "F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5 F6 F7 F8 F9 F10 F11 B6 B7 B8 B9 B10 B11");
}

}  // namespace
}  // namespace rehearse::schedule
