// SPDX-License-Identifier: Apache-2.0
// Run under mpirun with 1 to 9 ranks. Every algorithm of every collective, by messages and through shared memory, in
// every data type: the oracle is written out from the formula of the inputs.
#include "kernels/comm/operation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/half.hpp"
#include "kernels/comm/communicator.hpp"
#include "kernels/comm/idle.hpp"
#include "kernels/comm/mpi.hpp"
#include "tests/kernels/comm/mpi_main.hpp"

namespace rehearse::kernels {
namespace {

// Whole numbers below 28: the sum of nine is below 256, and exact in bf16, which has 8 binary digits.
float value(std::int64_t rank, std::int64_t i) { return static_cast<float>((rank * 11 + i * (rank + 3)) % 28); }

float sum_of_values(std::int64_t ranks, std::int64_t i) {
    float sum = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) sum += value(rank, i);
    return sum;
}

constexpr float nothing = 255;

// Numbers as they are stored, between guards.
class Stored {
public:
    Stored(DataType type, std::int64_t count)
        : type_(type), unit_(static_cast<std::size_t>(size_of(type).value)), count_(count) {
        bytes_.resize(static_cast<std::size_t>(count + 2 * guard) * unit_);
        for (std::int64_t i = -guard; i < count + guard; ++i) set(i, nothing);
    }
    std::span<std::byte> span() { return std::span{bytes_}.subspan(guard * unit_, std::size_t(count_) * unit_); }
    void set(std::int64_t i, float number) {
        const std::uint16_t small = type_ == DataType::f16 ? Float16{number}.bits : BFloat16{number}.bits;
        std::memcpy(at(i), unit_ == 4 ? static_cast<const void*>(&number) : &small, unit_);
    }
    float get(std::int64_t i) {
        float number = 0;
        std::uint16_t small = 0;
        std::memcpy(unit_ == 4 ? static_cast<void*>(&number) : &small, at(i), unit_);
        if (unit_ == 4) return number;
        return type_ == DataType::f16 ? static_cast<float>(Float16::of_bits(small))
                                      : static_cast<float>(BFloat16::of_bits(small));
    }
    bool guarded() {
        for (std::int64_t i = 0; i < guard; ++i) {
            if (get(-1 - i) != nothing || get(count_ + i) != nothing) return false;
        }
        return true;
    }

private:
    static constexpr std::int64_t guard = 9;
    std::byte* at(std::int64_t i) { return bytes_.data() + std::size_t(i + guard) * unit_; }
    DataType type_;
    std::size_t unit_;
    std::int64_t count_;
    std::vector<std::byte> bytes_;
};

// Which rank's element a rank must have at `i`; the sum of all for -1, anything for -2.
std::int64_t owner(const Collective& c, std::int64_t rank, std::int64_t i) {
    switch (c.kind()) {
        case CollectiveKind::all_reduce:
            return -1;
        case CollectiveKind::reduce_scatter:
            return c.chunk(rank).begin <= i && i < c.chunk(rank).end ? -1 : -2;
        case CollectiveKind::all_gather:
            for (std::int64_t r = 0;; ++r) {
                if (i < c.chunk(r).end) return r;
            }
        case CollectiveKind::broadcast:
            return c.root();
        case CollectiveKind::all_to_all:
            return rank;
        case CollectiveKind::halo:
            break;
    }
    return -2;
}

void expect_result(const Collective& c, std::int64_t rank, Stored& data, Stored& received) {
    for (std::int64_t i = 0; i < c.elements(); ++i) {
        const std::int64_t whose = owner(c, rank, i);
        if (whose == -2) continue;
        ASSERT_EQ(data.get(i), whose == -1 ? sum_of_values(c.group().size, i) : value(whose, i)) << i;
    }
    if (c.kind() == CollectiveKind::all_to_all) {
        const Range mine = c.chunk(rank);
        for (std::int64_t from = 0; from < c.group().size; ++from) {
            for (std::int64_t i = mine.begin; i < mine.end; ++i) {
                ASSERT_EQ(received.get(from * c.slot() + i - mine.begin), value(from, i)) << from << " " << i;
            }
        }
    }
    EXPECT_TRUE(data.guarded() && received.guarded());
}

// By a wait, or by tests until it is done.
void expect_right(Communicator& ranks, const Collective& c, DataType type, bool by_test) {
    SCOPED_TRACE(fmt::format("{} {} of {} {}, root {}", to_string(c.kind()), to_string(c.algorithm()), c.elements(),
                             to_string(type), c.root()));
    const RankProgram program{c, ranks.rank()};
    Stored data{type, c.elements()}, received{type, c.extent() - c.elements()};
    for (std::int64_t i = 0; i < c.elements(); ++i) {
        const std::int64_t whose = owner(c, ranks.rank(), i);
        const bool has = c.kind() == CollectiveKind::all_gather || c.kind() == CollectiveKind::broadcast
                             ? whose == ranks.rank()
                             : true;
        data.set(i, has ? value(ranks.rank(), i) : nothing);
    }
    Operation operation{ranks, program, {type, data.span(), received.span()}};
    if (by_test) {
        Idle idle = attentive();
        while (!operation.test()) idle();
    } else {
        operation.wait();
    }
    EXPECT_TRUE(operation.test());
    expect_result(c, ranks.rank(), data, received);
}

// More ranks than cores wait for each other at each round.
std::vector<std::int64_t> sizes(std::int64_t n) {
    if (n > 4) return {1, n - 1, n + 1, 20'003};
    return {0, 1, 2, 7, n - 1, n, n + 1, 1000, 200'003};
}

void expect_all_right(Communicator& ranks) {
    const std::int64_t n = ranks.size();
    std::int64_t turn = 0;
    for (const CollectiveKind kind : collective_kinds()) {
        for (const AlgorithmName& name : algorithms(kind)) {
            if (name.name.find('(') != std::string_view::npos) continue;
            const Algorithm algorithm = parse_algorithm(name.name, kind);
            for (const std::int64_t elements : sizes(n)) {
                const auto type = std::array{DataType::f32, DataType::f16, DataType::bf16}.at(std::size_t(turn++ % 3));
                const std::int64_t root = kind == CollectiveKind::broadcast ? turn % n : 0;
                expect_right(ranks, {kind, algorithm, {n, n}, elements, root}, type, turn % 2 == 0);
            }
        }
    }
}

// As if every two ranks were a node: what leaves it and what stays there are messages of one round.
void expect_rings_right(Communicator& ranks) {
    const std::int64_t n = ranks.size();
    for (const std::int64_t elements : sizes(n))
        expect_right(ranks, {CollectiveKind::all_reduce, parse_algorithm("rings"), {n, n % 2 == 0 ? 2 : 1}, elements},
                     DataType::f32, true);
}

TEST(EveryCollective, ByMessages) {
    Communicator world = Communicator::world();
    expect_all_right(world);
}

TEST(EveryCollective, ThroughSharedMemory) {
    Communicator world = Communicator::world();
    world.connect();
    expect_all_right(world);
}

// As a host boundary would: pairs share memory, other ranks send messages.
TEST(EveryCollective, PartlyThroughSharedMemory) {
    Communicator world = Communicator::world();
    world.connect([](std::int64_t rank) { return rank / 2; });
    expect_all_right(world);
    expect_rings_right(world);
}

TEST(Operation, OverlapsWithWorkAndWithAnotherOnAnotherCommunicator) {
    Communicator first = Communicator::world(), second = Communicator::world();
    first.connect();
    const std::int64_t n = first.size(), elements = 100'000;
    const RankProgram program{all_reduce({}, {n, n}, elements), first.rank()};
    std::vector<float> a(elements, 1), b(elements, 2);
    Operation on_first{first, program, floats(a)};
    Operation on_second{second, program, floats(b)};
    Idle work = attentive();
    for (bool done = false; !done; work()) {
        const bool one = on_first.test();
        done = on_second.test() && one;
    }
    EXPECT_THAT(a, testing::Each(static_cast<float>(n)));
    EXPECT_THAT(b, testing::Each(static_cast<float>(2 * n)));
}

// Through shared memory a message goes in slots of 64 KiB, which its sender fills and its receiver empties: a wait is
// for the next of them, not for the whole message. A ring of n ranks has 2 (n - 1) rounds of a message out and one in.
TEST(Operation, TellsOfEachPartOfALongMessage) {
    Communicator world = Communicator::world();
    world.connect();
    constexpr std::int64_t slots = 20, floats_of_slot = 16 << 10;
    const std::int64_t n = world.size(), rounds = 2 * (n - 1);
    std::vector<float> data(static_cast<std::size_t>(n * slots * floats_of_slot), 1);
    const RankProgram program{all_reduce(parse_algorithm("ring"), {n, n}, std::ssize(data)), world.rank()};
    Operation operation{world, program, floats(data)};
    operation.wait(attentive());
    EXPECT_EQ(operation.moved(), static_cast<std::size_t>(rounds * (1 + 2 * slots)));
    EXPECT_THAT(data, testing::Each(static_cast<float>(n)));
}

TEST(Operation, RefusesASecondOneOnABusyCommunicatorAndShortBuffers) {
    Communicator alone = Communicator::self();
    std::vector<float> data(4);
    const RankProgram program{all_reduce({}, {1, 1}, 4), 0};
    const Operation first{alone, program, floats(data)};
    EXPECT_THROW((Operation{alone, program, floats(data)}), std::logic_error);
    Communicator other = Communicator::self();
    EXPECT_THROW((Operation{other, program, floats(std::span{data}.first(3))}), std::logic_error);
    const auto kind = CollectiveKind::all_to_all;
    const RankProgram exchange{{kind, parse_algorithm("bruck", kind), {1, 1}, 4}, 0};
    EXPECT_THROW((Operation{other, exchange, floats(data, std::span{data}.first(3))}), std::logic_error);
}

// Adasum: small whole numbers, so that dot products are exact in f32; coefficients are ratios of them.
TEST(Adasum, CombinesVectorsOfAllRanks) {
    Communicator world = Communicator::world();
    const std::int64_t n = world.size();
    for (const bool shares : {false, true}) {
        if (shares) world.connect();
        for (const std::int64_t elements : {1L, 7L, 20'003L}) {
            SCOPED_TRACE(fmt::format("{} elements", elements));
            const Collective adasum = all_reduce(parse_algorithm("adasum"), {n, n}, elements);
            const RankProgram program{adasum, world.rank()};
            std::vector<float> room(static_cast<std::size_t>(adasum.extent() - elements));
            std::vector<float> equal, apart;
            for (std::int64_t i = 0; i < elements; ++i) {
                equal.push_back(static_cast<float>(i % 5 - 2));
                apart.push_back(i % n == world.rank() ? static_cast<float>(i % 7 + 1) : 0);
            }
            const std::vector<float> average = equal;
            world.run(program, floats(equal, room));
            world.run(program, floats(apart, room));
            // Equal vectors average: 1/2 + 1/2 at each level, exactly. Others' places are 0: they add.
            EXPECT_EQ(equal, average);
            for (std::int64_t i = 0; i < elements; ++i) {
                ASSERT_EQ(apart[static_cast<std::size_t>(i)], static_cast<float>(i % 7 + 1)) << i;
            }
            // Whatever the vectors, every rank has the same bits.
            std::vector<float> mixed;
            for (std::int64_t i = 0; i < elements; ++i) {
                mixed.push_back(static_cast<float>((i * (world.rank() + 3)) % 11 - 5));
            }
            world.run(program, floats(mixed, room));
            std::vector<double> sum(2);
            for (std::size_t i = 0; i < mixed.size(); ++i) sum[i % 2] += static_cast<double>(i + 1) * mixed[i];
            const std::vector<double> all = world.all_gather(sum);
            for (std::size_t i = 2; i < all.size(); ++i) EXPECT_EQ(all[i], all[i - 2]);
        }
    }
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
