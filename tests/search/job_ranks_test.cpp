// SPDX-License-Identifier: Apache-2.0
// A search by all ranks of a job finds what one process finds. Run under mpirun.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kernels/comm/counter.hpp"
#include "models/models.hpp"
#include "run/train.hpp"
#include "search/search.hpp"
#include "tests/kernels/comm/mpi_main.hpp"

namespace rehearse::search {
namespace {

using kernels::Communicator;

TEST(Counter, GivesEachNumberToOneRank) {
    Communicator world = Communicator::world();
    kernels::Counter counter{world};
    for (int round = 0; round < 2; ++round) {
        constexpr std::int64_t each = 50;
        std::vector<double> mine;
        for (std::int64_t i = 0; i < each; ++i) mine.push_back(static_cast<double>(counter.take()));
        EXPECT_TRUE(std::ranges::is_sorted(mine));
        std::vector<double> all = world.all_gather(mine);
        std::ranges::sort(all);
        for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<double>(i));
        counter.restart();
    }
}

TEST(JobRanks, FindsWhatOneProcessFinds) {
    Communicator world = Communicator::world();
    const Machine machine = models::load_machine("dgx1-v100");
    const Network network = models::load_network("vgg16");
    Request request;
    request.devices = {4, 8};
    request.job.global_batch = 64;
    request.simulated = 5;
    request.variety.chunks = 2;
    const Result alone = search(network, machine, request);
    kernels::Counter counter{world};
    const JobRanks ranks{[&] { return counter.take(); },
                         [&](const std::string& own) {
                             std::vector<std::string> all = world.all_gather(own);
                             counter.restart();
                             return all;
                         }};
    const Result together = search(network, machine, request, {}, {}, ranks);
    ASSERT_EQ(together.ranked.size(), alone.ranked.size());
    for (std::size_t i = 0; i < alone.ranked.size(); ++i) {
        EXPECT_EQ(together.ranked[i].plan, alone.ranked[i].plan);
        EXPECT_EQ(together.ranked[i].choices, alone.ranked[i].choices);
        EXPECT_EQ(together.ranked[i].result.step, alone.ranked[i].result.step);
        EXPECT_EQ(together.ranked[i].result.high, alone.ranked[i].result.high);
    }
    EXPECT_EQ(together.counts.simulated, alone.counts.simulated) << "each plan by one rank";
    EXPECT_GE(together.counts.screened, alone.counts.screened) << "a rank that has seen less binds fewer meshes";
    EXPECT_EQ(together.least_memory <= alone.least_memory, true);
}

}  // namespace
}  // namespace rehearse::search

int main(int argc, char** argv) {
    const rehearse::run::Session session{argc, argv};
    return session.run("test", [&] { return rehearse::test::run_on_all_ranks(argc, argv); });
}
