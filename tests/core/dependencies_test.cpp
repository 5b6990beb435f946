// SPDX-License-Identifier: Apache-2.0
#include "core/dependencies.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace rehearse {
namespace {

// Only what waits for another stream, and what of the same name must be told apart from it.
TEST(Dependencies, AreThoseBetweenStreams) {
    Schedule schedule;
    schedule.mesh.axes = {{"data", 2}};
    RankClass& all = schedule.classes.emplace_back();
    const auto step = [&](const char* name, Stream stream, int micro_batch, std::vector<int> after) {
        Compute compute;
        compute.micro_batch = micro_batch;
        all.steps.push_back({name, stream, compute, std::move(after)});
    };
    step("alone", Stream::compute, 0, {});
    step("twice", Stream::compute, 1, {0});
    step("twice", Stream::compute, 1, {1});
    step("sum", Stream::communication, 0, {2});
    step("last", Stream::compute, 0, {2, 3});
    const std::vector<RankIndex> ranks{RankIndex{0}, RankIndex{1}};
    const auto found = dependencies_of(schedule, ranks);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].ranks, ranks);
    EXPECT_EQ(found[0].steps, (std::vector<Dependencies::Step>{{"twice", Stream::compute, 1, {}},
                                                               {"twice", Stream::compute, 1, {}},
                                                               {"sum", Stream::communication, 0, {1}},
                                                               {"last", Stream::compute, 0, {2}}}));
}

}  // namespace
}  // namespace rehearse
