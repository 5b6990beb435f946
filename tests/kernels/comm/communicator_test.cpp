// SPDX-License-Identifier: Apache-2.0
// Run under mpirun with 1 to 4 ranks. The oracle of every sum is written out from the formula of the inputs.
#include "kernels/comm/communicator.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>

#include "core/error.hpp"
#include "kernels/comm/mpi.hpp"
#include "tests/kernels/comm/mpi_main.hpp"

namespace rehearse::kernels {
namespace {

// Whole numbers below 2^10, different on each rank and element: the sum of four is exact in f32, in any order.
float value(std::int64_t rank, std::int64_t i) { return static_cast<float>((rank + 1) * 17 + i * (rank + 3) % 97); }

float sum_of_values(std::int64_t ranks, std::int64_t i) {
    float sum = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) sum += value(rank, i);
    return sum;
}

struct Case {
    std::string algorithm;
    std::int64_t per_node;
};

std::vector<Case> cases(std::int64_t ranks) {
    std::vector<Case> all{{"ring", ranks}, {"doubling", ranks},   {"halving", ranks},
                          {"tree", ranks}, {"doubletree", ranks}, {"torus", ranks}};
    for (const std::int64_t per_node : {1, 2}) {
        if (ranks % per_node != 0) continue;
        for (const char* inside : {"ring", "halving", "tree"}) {
            for (const char* across : {"ring", "doubling", "halving", "tree"}) {
                all.push_back({fmt::format("hierarchical({},{})", inside, across), per_node});
            }
        }
    }
    return all;
}

// Sums on all ranks of `communicator`, between guards that no transfer may touch.
void expect_sums(Communicator& communicator, const Case& which, std::int64_t elements, const Idle& idle = {}) {
    SCOPED_TRACE(fmt::format("{} per_node {} elements {}", which.algorithm, which.per_node, elements));
    constexpr std::int64_t guard = 8;
    constexpr float untouched = -12345;
    const Group group{communicator.size(), which.per_node};
    const RankProgram program{all_reduce(parse_algorithm(which.algorithm), group, elements), communicator.rank()};
    std::vector<float> memory(static_cast<std::size_t>(elements + 2 * guard), untouched);
    std::vector<float> expected = memory;
    for (std::int64_t i = 0; i < elements; ++i) {
        memory[static_cast<std::size_t>(guard + i)] = value(communicator.rank(), i);
        expected[static_cast<std::size_t>(guard + i)] = sum_of_values(communicator.size(), i);
    }
    communicator.all_reduce(program, std::span{memory}.subspan(guard), idle);
    EXPECT_EQ(memory, expected);
}

TEST(AllReduceOverMpi, EveryAlgorithmSumsEverySizeExactly) {
    Communicator world = Communicator::world();
    const std::int64_t n = world.size();
    for (const Case& which : cases(n)) {
        for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, n - 1, n, n + 1,
                                            std::int64_t{1000}, std::int64_t{65537}}) {
            expect_sums(world, which, elements);
        }
    }
}

TEST(AllReduceThroughSharedMemory, EveryAlgorithmSumsEverySizeExactly) {
    Communicator world = Communicator::world();
    world.connect();
    const std::int64_t n = world.size();
    for (const Case& which : cases(n)) {
        for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{1}, n + 1, std::int64_t{300'001}}) {
            expect_sums(world, which, elements);
        }
    }
}

TEST(AllReduceOverMpi, SumsWhileTheWaitGivesItsCoreAway) {
    Communicator world = Communicator::world();
    std::int64_t waits = 0;
    for (const Case& which : cases(world.size())) expect_sums(world, which, 65537, [&] { ++waits; });
    if (world.size() == 1) {
        EXPECT_EQ(waits, 0);
    }
}

TEST(AllReduceOverMpi, TwoGroupsSumApartFromEachOther) {
    const Communicator world = Communicator::world();
    if (world.size() < 4) GTEST_SKIP() << "needs four ranks";
    Communicator half = world.split(world.rank() % 2, world.rank());
    ASSERT_EQ(half.size(), 2);
    std::vector<float> data{static_cast<float>(world.rank()), 1};
    half.all_reduce(RankProgram{all_reduce({}, {2, 2}, 2), half.rank()}, data);
    EXPECT_EQ(data, (std::vector<float>{world.rank() % 2 == 0 ? 2.0F : 4.0F, 2}));
}

TEST(AllReduceOverMpi, RefusesAProgramForAnotherNumberOfRanks) {
    Communicator alone = Communicator::self();
    std::vector<float> data(4);
    EXPECT_THROW(alone.all_reduce(RankProgram{all_reduce({}, {2, 2}, 4), 0}, data), std::logic_error);
}

void expect_an_end_when_idle_throws(bool connected) {
    Communicator world = Communicator::world();
    if (world.size() < 2) GTEST_SKIP() << "needs a rank that does not come";
    // The last rank does not come at all: it only makes room for the messages' space, and leaves.
    Communicator lonely = Communicator::world();
    if (connected) lonely.connect();
    std::vector<float> data(100000);
    const RankProgram program{all_reduce({}, {world.size(), world.size()}, static_cast<std::int64_t>(data.size())),
                              world.rank()};
    if (world.rank() == 0) {
        const auto give_up = [looks = 0]() mutable {
            if (++looks == 100) throw std::runtime_error{"given up"};
        };
        EXPECT_THROW(lonely.all_reduce(program, data, give_up), std::runtime_error);
        EXPECT_THROW(lonely.all_reduce(program, data), std::logic_error) << "half done";
    }
}

TEST(AllReduceOverMpi, AnIdleThatThrowsEndsTheWait) { expect_an_end_when_idle_throws(false); }
TEST(AllReduceThroughSharedMemory, AnIdleThatThrowsEndsTheWait) { expect_an_end_when_idle_throws(true); }

TEST(Communicator, RanksAreNumberedFromZero) {
    const Communicator world = Communicator::world();
    const auto own = static_cast<double>(world.rank());
    const std::vector<double> all = world.all_gather({&own, 1});
    ASSERT_EQ(static_cast<std::int64_t>(all.size()), world.size());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<double>(i));
    EXPECT_EQ(world.node().size(), world.size()) << "all test ranks run on one host";
}

TEST(Communicator, BytesGoAroundTheRing) {
    const Communicator world = Communicator::world();
    const std::int64_t n = world.size();
    if (n < 2) GTEST_SKIP() << "needs somebody to talk to";
    std::vector<std::byte> token(1000);
    if (world.rank() != 0) world.receive(token, world.rank() - 1);
    for (std::byte& b : token) b = static_cast<std::byte>(std::to_integer<int>(b) + 1);
    world.send(token, (world.rank() + 1) % n);
    if (world.rank() != 0) return;
    world.receive(token, n - 1);
    EXPECT_THAT(token, testing::Each(static_cast<std::byte>(n)));
}

TEST(Communicator, GathersBytesOfEveryLengthAtRankZero) {
    const Communicator world = Communicator::world();
    const std::vector<std::byte> own(static_cast<std::size_t>(world.rank()) * 3, static_cast<std::byte>(world.rank()));
    const auto all = world.gather(own);
    if (world.rank() != 0) {
        EXPECT_TRUE(all.empty());
        return;
    }
    ASSERT_EQ(static_cast<std::int64_t>(all.size()), world.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        EXPECT_EQ(all[rank], std::vector<std::byte>(rank * 3, static_cast<std::byte>(rank)));
    }
}

TEST(Communicator, BroadcastsFromEveryRoot) {
    const Communicator world = Communicator::world();
    for (std::int64_t root = 0; root < world.size(); ++root) {
        std::vector<std::byte> bytes(10, static_cast<std::byte>(world.rank()));
        world.broadcast(bytes, root);
        EXPECT_THAT(bytes, testing::Each(static_cast<std::byte>(root)));
        world.barrier();
    }
}

TEST(Communicator, ARefusalOfMpiIsABackendErrorWithItsWords) {
    const Communicator world = Communicator::world();
    const std::vector<std::byte> bytes(1);
    try {
        world.send(bytes, world.size() + 5);
        ADD_FAILURE() << "there is no such rank";
    } catch (const BackendError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("MPI_Send"));
        EXPECT_THAT(error.what(), testing::HasSubstr("rank"));
    }
}

// MPI counts bytes in an int: what does not fit goes in parts. 2.1 GB on each rank.
TEST(Messages, MayBeLargerThanMpiCounts) {
    if (std::getenv("REHEARSE_LONG") == nullptr) GTEST_SKIP() << "takes gigabytes: the test labelled long runs it";
    const Communicator world = Communicator::world();
    const std::size_t size = (std::size_t{1} << 31U) + 5;
    const auto mark = [](std::int64_t rank, std::size_t place) {
        return static_cast<std::byte>(rank + 3 * (place % 7));
    };
    std::vector<std::byte> own(size);
    const std::vector<std::size_t> places{0,       (1U << 30U) - 1, 1U << 30U, (1U << 31U) - 1, std::size_t{1} << 31U,
                                          size - 1};
    for (const std::size_t place : places) own[place] = mark(world.rank(), place);
    {
        const auto all = world.gather(own);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            ASSERT_EQ(all[rank].size(), size);
            for (const std::size_t place : places)
                EXPECT_EQ(all[rank][place], mark(static_cast<std::int64_t>(rank), place));
        }
    }
    world.broadcast(own, 1);
    for (const std::size_t place : places) EXPECT_EQ(own[place], mark(1, place));
}

}  // namespace
}  // namespace rehearse::kernels

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    const int code = rehearse::test::run_on_all_ranks(argc, argv);
    MPI_Finalize();
    return code;
}
