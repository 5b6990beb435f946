// SPDX-License-Identifier: Apache-2.0
// Run under mpirun. A ring over sockets sums what its ranks have, exactly (whole numbers), and its messages are
// measured.
#include "bench/sockets.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "bench/messages.hpp"
#include "run/train.hpp"

namespace rehearse::bench {
namespace {

SocketRing::Exchange exchange_of(const kernels::Communicator& world) {
    return [&world](const std::string& mine) { return world.all_gather(mine); };
}

TEST(SocketRing, SumsOverAllRanks) {
    const kernels::Communicator world = kernels::Communicator::world();
    SocketRing ring(world.rank(), world.size(), exchange_of(world));
    // Fewer elements than ranks, sizes that no number of ranks divides, pieces of more than a mebibyte.
    for (const std::size_t count : {1U, 2U, 5U, 7U, 1000U, 99991U, 1600001U}) {
        std::vector<float> data(count);
        for (std::size_t i = 0; i < count; ++i)
            data[i] = static_cast<float>(i % 100 + 1) * static_cast<float>(world.rank() + 1);
        ring.all_reduce(data);
        const auto ranks = static_cast<float>(world.size() * (world.size() + 1) / 2);  // 1 + 2 + ... + n
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(data[i], static_cast<float>(i % 100 + 1) * ranks) << i << " of " << count;
        }
    }
    EXPECT_GT(ring.helper_seconds(), 0);
    world.barrier();  // a helper ends when its neighbours leave
}

TEST(Sockets, AreMeasuredAloneAndBesideComputation) {
    const kernels::Communicator world = kernels::Communicator::world();
    const calibrate::Messages messages =
        measure_sockets(team_of(world), exchange_of(world), {.count = 2, .budget = Seconds{0.2}});
    EXPECT_EQ(messages.over, "sockets");
    std::set<double> sizes;
    for (const calibrate::MessageSample& sample : messages.samples) {
        EXPECT_GT(sample.one_way.value, 0);
        sizes.insert(sample.size.value);
    }
    EXPECT_EQ(*sizes.begin(), 64);
    EXPECT_EQ(*sizes.rbegin(), 8 * 1048576.0);
    EXPECT_EQ(messages.samples.size(), 2 * sizes.size());
    EXPECT_EQ(messages.overlap.size(), 2U * 4U);
    for (const calibrate::OverlapSample& sample : messages.overlap) EXPECT_GT(sample.lost.value, 0);
}

}  // namespace
}  // namespace rehearse::bench
