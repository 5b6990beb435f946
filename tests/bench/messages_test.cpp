// SPDX-License-Identifier: Apache-2.0
// Run under mpirun. That every rank takes part and every size is measured, not how long it takes.
#include "bench/messages.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "bench/compute.hpp"
#include "calibrate/fit.hpp"
#include "run/train.hpp"

namespace rehearse::bench {
namespace {

const Rounds quick{.count = 3, .budget = Seconds{0.1}};

TEST(Team, AgreesOnTheMeanOfItsRanks) {
    const kernels::Communicator world = kernels::Communicator::world();
    const Team team = team_of(world);
    EXPECT_EQ(team.ranks, world.size());
    EXPECT_EQ(team.rank, world.rank());
    // 1 + 2 + ... + n over n.
    EXPECT_EQ(team.mean(static_cast<double>(team.rank + 1)), static_cast<double>(team.ranks + 1) / 2);
}

TEST(Messages, AreMeasuredFromEightBytesToAsLargeAsTheBudgetAllows) {
    kernels::Communicator world = kernels::Communicator::world();
    const calibrate::Messages messages = measure_messages(world, quick);
    std::set<double> sizes;
    for (const calibrate::MessageSample& sample : messages.samples) {
        EXPECT_GT(sample.one_way.value, 0);
        sizes.insert(sample.size.value);
    }
    EXPECT_EQ(*sizes.begin(), 8);
    EXPECT_GE(*sizes.rbegin(), 1048576.0);
    EXPECT_LE(*sizes.rbegin(), 16 * 1048576.0);
    EXPECT_EQ(*sizes.rbegin(), 8 * std::exp2(sizes.size() - 1));  // powers of two, all of them
    EXPECT_EQ(messages.samples.size(), 3 * sizes.size());
    EXPECT_GT(messages.reduce.median.value, 0);
}

TEST(Messages, AreMeasuredBesideComputationToo) {
    kernels::Communicator world = kernels::Communicator::world();
    const calibrate::Messages messages = measure_messages(world, quick);
    EXPECT_EQ(messages.overlap.size(), 3U * 4U);
    for (const calibrate::OverlapSample& sample : messages.overlap) {
        EXPECT_GT(sample.alone.value, 0);
        EXPECT_GT(sample.beside.value, 0);
        EXPECT_GT(sample.lost.value, 0);
        EXPECT_LT(sample.lost.value, 0.1);
    }
}

TEST(Messages, GiveEveryRankTheSameSamples) {
    kernels::Communicator world = kernels::Communicator::world();
    const calibrate::Messages messages = measure_messages(world, quick);
    std::vector<double> own;
    for (const calibrate::MessageSample& sample : messages.samples) own.push_back(sample.one_way.value);
    const std::vector<double> all = world.all_gather(own);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], own[i % own.size()]);
}

TEST(Measure, OfAllRanksTogetherGivesEachTheSameSamples) {
    const kernels::Communicator world = kernels::Communicator::world();
    Options options;
    options.rounds = quick;
    options.team = team_of(world);
    const Problem problem{Activation{Nonlinearity::relu, {100}}, Pass::forward, 4};
    const Sample sample = measure(std::vector<calibrate::Needed>{{problem, Bytes{1e5}}}, options).samples.front();
    const std::vector<double> all = world.all_gather({&sample.median.value, 1});
    for (const double other : all) EXPECT_EQ(other, all.front());
}

}  // namespace
}  // namespace rehearse::bench
