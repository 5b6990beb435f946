// SPDX-License-Identifier: Apache-2.0
// Sharing by weights, by hand and against as many flows of weight one. tests/sim/rounds_test.cpp holds those to
// SimGrid.
#include "sim/network/max_min.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace rehearse::sim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

struct TestFlow {
    std::vector<std::int32_t> links;
    std::vector<double> weights;
    double bytes = 0, start = 0;
};

// When each flow ends.
std::vector<double> ends_of(const std::vector<double>& capacities, const std::vector<TestFlow>& flows) {
    MaxMin shared;
    for (const double capacity : capacities) shared.add_link(capacity);
    std::vector<double> ends(flows.size(), never);
    std::vector<std::size_t> order(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return flows[i].start; });
    std::vector<std::int64_t> ended;
    std::size_t begun = 0;
    for (;;) {
        const double begins = begun < order.size() ? flows[order[begun]].start : never;
        const double time = std::min(shared.next(), begins);
        if (time == never) return ends;
        ended.clear();
        shared.pass(time, ended);
        for (const std::int64_t tag : ended) ends[static_cast<std::size_t>(tag)] = time;
        for (; begun < order.size() && flows[order[begun]].start <= time; ++begun) {
            const TestFlow& flow = flows[order[begun]];
            shared.begin({flow.links, flow.weights}, flow.bytes, static_cast<std::int64_t>(order[begun]));
        }
    }
}

TEST(MaxMin, GivesEachFlowTheSameRateWhateverItsWeight) {
    // 8 bytes a second; of weight 3 and of weight 1: 2 bytes a second each. The first has 6 bytes, so it ends after 3
    // s; then the second has 4 of its 10 bytes left and the whole link: half a second more.
    const std::vector<double> ends = ends_of({8}, {{{0}, {3}, 6}, {{0}, {}, 10}});
    EXPECT_THAT(ends, testing::ElementsAre(testing::DoubleEq(3), testing::DoubleEq(3.5)));
}

TEST(MaxMin, LetsOthersHaveWhatAHeavyFlowCannotUse) {
    // The heavy flow is held up on a link of 2 bytes a second by its weight of 4 there: half a byte a second. Of the
    // other link, of 10, it takes 1 by its weight of 2, the light flow 9.
    const std::vector<double> ends = ends_of({2, 10}, {{{0, 1}, {4, 2}, 1}, {{1}, {1}, 27}});
    EXPECT_DOUBLE_EQ(ends[0], 2);
    EXPECT_DOUBLE_EQ(ends[1], 2 + 9 / 10.0);
}

TEST(MaxMin, EndsAFlowOfNoBytesAtOnce) {
    EXPECT_THAT(ends_of({1}, {{{0}, {1}, 0, 5}, {{0}, {1}, 2, 4}}), testing::ElementsAre(5, 6));
}

TEST(MaxMin, RefusesAFlowWithoutLinks) { EXPECT_THROW(MaxMin{}.begin({}, 1, 0), std::logic_error); }

/// A flow of weight n on all its links is n equal flows.
TEST(MaxMin, SaysOfAWeightWhatItSaysOfSoManyFlows) {
    std::mt19937 random{7};
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int round = 0; round < 200; ++round) {
        std::vector<double> capacities(static_cast<std::size_t>(2 + below(6)));
        for (double& capacity : capacities) capacity = 1 + below(20);
        std::vector<TestFlow> weighted, single;
        std::vector<std::size_t> first;
        const int count = 2 + below(8);
        for (int i = 0; i < count; ++i) {
            TestFlow flow{.links = {}, .weights = {}, .bytes = 1.0 + below(50), .start = below(4) * 0.5};
            const int weight = 1 + below(4);
            for (std::int32_t link = 0; link < std::ssize(capacities); ++link) {
                if (below(2) == 0) flow.links.push_back(link);
            }
            if (flow.links.empty()) flow.links.push_back(0);
            first.push_back(single.size());
            for (int k = 0; k < weight; ++k) single.push_back(flow);
            flow.weights.assign(flow.links.size(), weight);
            weighted.push_back(flow);
        }
        const std::vector<double> by_weight = ends_of(capacities, weighted), one_by_one = ends_of(capacities, single);
        for (std::size_t i = 0; i < weighted.size(); ++i) {
            EXPECT_NEAR(by_weight[i], one_by_one[first[i]], 1e-9 * one_by_one[first[i]]) << round << " " << i;
        }
    }
}

}  // namespace
}  // namespace rehearse::sim
