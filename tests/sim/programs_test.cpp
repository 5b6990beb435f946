// SPDX-License-Identifier: Apache-2.0
// What files say that ranks do, simulated. Oracles: algebra, and exact mode on the schedule that the programs are of.
#include "sim/modes/programs.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "fixture.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"
#include "sim/rank_programs.hpp"

namespace rehearse::sim {
namespace {

/// Groups of these ranks.
std::vector<std::vector<RankIndex>> groups_of(const std::vector<std::vector<int>>& numbers) {
    std::vector<std::vector<RankIndex>> groups;
    for (const std::vector<int>& each : numbers) groups.emplace_back(each.begin(), each.end());
    return groups;
}

using namespace test;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Kind = ProgramNode::Kind;

ProgramNode computation(std::string name, Seconds time, std::vector<int> after = {}) {
    return {.name = std::move(name), .time = time, .after = std::move(after)};
}
ProgramNode message(Kind kind, std::string name, Bytes bytes, std::int64_t peer, std::vector<int> after = {}) {
    return {.kind = kind, .name = std::move(name), .bytes = bytes, .peer = RankIndex{peer}, .after = std::move(after)};
}
ProgramNode sum(std::string name, Bytes bytes, std::int64_t group = 0, std::vector<int> after = {}) {
    return {
        .kind = Kind::collective, .name = std::move(name), .bytes = bytes, .group = group, .after = std::move(after)};
}

double seconds(const RankPrograms& programs, const Machine& machine, const ProgramOptions& options = {}) {
    return length(simulate_programs(programs, machine, options).timeline).value;
}

// 1 ms, then 10 MB over a NIC of 10 GB/s with 2 us from card to card, then 2 ms: 1 + 1 + 0.002 + 2 ms.
TEST(RankProgramsOnAMachine, WaitForMessages) {
    const Machine machine = one_device_nodes(2, Star{});
    RankPrograms programs;
    programs.groups = groups_of({{0, 1}});
    programs.ranks = {{computation("a", 1_ms), message(Kind::send, "s", 10_MB, 1, {0})},
                      {message(Kind::receive, "r", 10_MB, 0), computation("b", 2_ms, {0})}};
    EXPECT_NEAR(seconds(programs, machine), 4.002e-3, 1e-9);
}

// A ring of 4 takes 6 rounds of a quarter of the data: 6 x (2 us + 2.5 MB / 10 GB/s) = 1.512 ms. Members of group 1 lie
// on no axis of a mesh, and have one message each way in each of 2 rounds: 2 x (2 us + 5 MB / 10 GB/s) = 1.004 ms.
TEST(RankProgramsOnAMachine, SumByRingsAmongAnyRanks) {
    const Machine machine = one_device_nodes(4, Star{});
    RankPrograms programs;
    programs.groups = groups_of({{0, 1, 2, 3}, {0, 1, 3}, {3, 0}});
    const ProgramOptions ring{.all_reduce = Algorithm{}};
    programs.ranks.assign(4, {sum("all", 10_MB)});
    EXPECT_NEAR(seconds(programs, machine, ring), 1.512e-3, 1e-9);
    programs.ranks = {{sum("two", 10_MB, 2)}, {}, {}, {sum("two", 10_MB, 2)}};
    EXPECT_NEAR(seconds(programs, machine, ring), 1.004e-3, 1e-9);
    // 4 rounds of a third: 4 x (2 us + 3 MB / 10 GB/s).
    programs.ranks = {{sum("three", 9_MB, 1)}, {sum("three", 9_MB, 1)}, {}, {sum("three", 9_MB, 1)}};
    EXPECT_NEAR(seconds(programs, machine, ring), 1.208e-3, 1e-9);
}

// As plans do: on three nodes by rings, on five what is small by halving, and two devices leave nothing to switches.
TEST(RankProgramsOnAMachine, SumByDefaultAsPlansDo) {
    const auto expect_default = [](const Machine& machine, std::int64_t ranks, Bytes bytes, const char* algorithm) {
        RankPrograms programs;
        programs.groups.emplace_back();
        for (RankIndex rank{0}; rank < ranks; ++rank) programs.groups.front().push_back(rank);
        programs.ranks.assign(static_cast<std::size_t>(ranks), {sum("all", bytes)});
        const double named = seconds(programs, machine, {.all_reduce = parse_algorithm(algorithm)});
        EXPECT_NEAR(seconds(programs, machine) / named, 1, 1e-9) << algorithm << " of " << ranks;
    };
    expect_default(four_device_nodes(3), 12, 12_MB, "hierarchical(ring,ring)");
    expect_default(four_device_nodes(4), 16, 12_MB, "hierarchical(ring,halving)");
    expect_default(four_device_nodes(5), 20, 8_kB, "hierarchical(ring,halving)");
    expect_default(four_device_nodes(5), 20, 20_MB, "hierarchical(ring,ring)");
    Machine sums = four_device_nodes(1);
    sums.nodes[0].sums = {{40.0_GBps, "test"}, {10_us, "test"}};
    expect_default(sums, 4, 12_MB, "direct");
    expect_default(sums, 2, 12_MB, "ring");
}

// Two computations that do not wait for each other have one device: 1 + 2 ms; a load goes on beside them.
TEST(RankProgramsOnAMachine, ComputeOneAfterTheOther) {
    const Machine machine = one_device_nodes(1, Star{});
    RankPrograms programs;
    programs.groups = groups_of({{0}});
    programs.ranks = {{computation("a", 1_ms), computation("b", 2_ms),
                       ProgramNode{.kind = Kind::load, .name = "load", .time = 2.5_ms},
                       computation("c", 1_ms, {0, 1})}};
    EXPECT_NEAR(seconds(programs, machine), 4e-3, 1e-12);
}

// The device does 1 TFLOP/s and moves 1 GB/s: 2 GFLOP take 2 ms, 3 MB take 3 ms.
TEST(RankProgramsOnAMachine, PriceWhatHasNoTimeByTheRoofline) {
    const Machine machine = one_device_nodes(1, Star{});
    RankPrograms programs;
    programs.groups = groups_of({{0}});
    programs.ranks = {{ProgramNode{.name = "a", .flops = Flops{2e9}, .bytes = 1_MB},
                       ProgramNode{.name = "b", .flops = Flops{2e9}, .bytes = 3_MB, .after = {0}},
                       computation("c", 4_ms, {1})}};
    EXPECT_EQ(price_untimed(programs, machine, DataType::f32), 2);
    EXPECT_NEAR(seconds(programs, machine), 9e-3, 1e-12);
    EXPECT_EQ(price_untimed(programs, machine, DataType::f32), 0) << "they have times now";
    programs.ranks[0].push_back(ProgramNode{.name = "d", .flops = Flops{1}});
    EXPECT_THAT([&] { price_untimed(programs, machine, DataType::bf16); },
                ThrowsMessage<InputError>(AllOf(HasSubstr("'d' of rank 0"), HasSubstr("no peak for bf16"))));
}

// From rank 2 it goes to 0, which need not wait for 1; from rank 0 to 1 and only then to 2.
TEST(RankProgramsOnAMachine, BroadcastFromTheirRoot) {
    const Machine machine = one_device_nodes(3, Star{});
    RankPrograms programs;
    programs.groups = groups_of({{0, 1, 2}});
    const auto with_root = [&](std::int64_t root) {
        ProgramNode weights = sum("weights", 1_kB);
        weights.collective = CollectiveKind::broadcast;
        weights.root = root;
        ProgramNode late = weights;
        late.after = {0};
        programs.ranks = {{weights}, {computation("a", 5_ms), late}, {weights, computation("b", 5_ms, {0})}};
        return seconds(programs, machine);
    };
    EXPECT_NEAR(with_root(0), 10e-3, 0.1e-3);
    EXPECT_NEAR(with_root(2), 5e-3, 0.1e-3);
    programs.ranks[0].front().root = 1;
    EXPECT_THAT([&] { simulate_programs(programs, machine); },
                ThrowsMessage<InputError>(HasSubstr("'weights' of rank 0 is a broadcast from rank 1, its counterpart "
                                                    "'weights' of rank 1 one from rank 2")));
}

// Rank 2 comes 1 ms late to a collective that moves nothing, and has 0.1 ms to do behind it, where the others have 1
// ms: 2 ms, and its hops. Without a meeting it would be 1.1 ms.
TEST(RankProgramsOnAMachine, MeetWhereThereIsNothingToMove) {
    const Machine machine = one_device_nodes(4, Star{});
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
        for (const double bytes : {0.0, 4.0}) {
            RankPrograms programs;
            programs.groups = groups_of({{0, 1, 2, 3}});
            for (const int rank : {0, 1, 2, 3}) {
                ProgramNode barrier = sum("barrier", Bytes{bytes}, 0, {0});
                barrier.collective = kind;
                programs.ranks.push_back({computation("a", rank == 2 ? 1_ms : 0.1_ms), barrier,
                                          computation("b", rank == 2 ? 0.1_ms : 1_ms, {1})});
            }
            EXPECT_NEAR(seconds(programs, machine), 2e-3, 0.02e-3) << to_string(kind) << " of " << bytes;
        }
    }
}

// Of execution traces both are nodes of the host.
TEST(RankProgramsOnAMachine, OfTheHostComputeOrReadSamples) {
    const Machine machine = one_device_nodes(1, Star{});
    RankPrograms programs;
    programs.groups = groups_of({{0}});
    std::vector<ProgramNode>& nodes = programs.ranks.emplace_back();
    for (const char* name : {"load:nvme", "aten::embedding", "enumerate(DataLoader)#_Iter.__next__:load"})
        nodes.push_back({.kind = Kind::load, .name = name, .time = 1_ms});
    std::vector<std::string> passes;
    for (const Event& event : simulate_programs(programs, machine, {}).timeline.events) passes.push_back(event.pass);
    EXPECT_THAT(passes, testing::ElementsAre("load", "host", "load"));
}

class EachPlan : public testing::TestWithParam<const char*> {};

TEST_P(EachPlan, TakesAsLongAsItsScheduleInExactMode) {
    Machine machine = four_device_nodes(4);
    machine.inside = messaging(4_us, 0.9, 200.0_GBps);
    machine.across = messaging(5_us, 0.8, 100.0_GBps);
    const Schedule schedule = make_schedule(models::load_network("lenet5"), machine, schedule::parse_plan(GetParam()),
                                            {.devices = 16, .batch_per_device = 32});
    const double exact = length(simulate(schedule, machine, {.mode = Mode::exact}).timeline).value;
    const RankPrograms programs = rank_programs(schedule, machine, Collectives_as::calls);
    EXPECT_NEAR(seconds(programs, machine) / exact, 1, 1e-6);
    // The messages of rounds by themselves: whoever receives adds nothing up, which is all that differs.
    const double messages = seconds(rank_programs(schedule, machine, Collectives_as::messages), machine);
    EXPECT_LE(messages, exact * (1 + 1e-6));
    EXPECT_GT(messages, exact * 0.8);
}

INSTANTIATE_TEST_SUITE_P(Programs, EachPlan,
                         testing::Values("data", "data:zero=3", "pipe=4:microbatches=8,data=4", "data=4,tensor=4"));

TEST(RankProgramsOnAMachine, AreRefusedWhereTheyDoNotMeet) {
    const Machine machine = one_device_nodes(2, Star{});
    RankPrograms programs;
    programs.groups = groups_of({{0, 1}});
    const auto simulated = [&] { simulate_programs(programs, machine); };
    programs.ranks = {{message(Kind::send, "s", 8_kB, 1)}, {}};
    EXPECT_THAT(simulated,
                ThrowsMessage<InputError>(HasSubstr("'s' of rank 0, a message to rank 1 with tag 0, has no")));
    programs.ranks = {{message(Kind::send, "s", 8_kB, 1)}, {message(Kind::receive, "r", 9_kB, 0)}};
    EXPECT_THAT(simulated, ThrowsMessage<InputError>(HasSubstr("sends 8000 bytes, 'r' of rank 1 receives 9000")));
    programs.ranks = {{sum("a", 8_kB)}, {}};
    EXPECT_THAT(simulated, ThrowsMessage<InputError>(HasSubstr("'a' of rank 0 has no counterpart on rank 1")));
    programs.ranks = {{sum("a", 8_kB)}, {sum("b", 9_kB)}};
    EXPECT_THAT(simulated, ThrowsMessage<InputError>(HasSubstr("all-reduce of 8000 bytes, its counterpart 'b'")));
    programs.ranks = {{message(Kind::receive, "r0", 8_kB, 1), message(Kind::send, "s0", 8_kB, 1, {0})},
                      {message(Kind::receive, "r1", 8_kB, 0), message(Kind::send, "s1", 8_kB, 0, {0})}};
    EXPECT_THAT(simulated, ThrowsMessage<InputError>(HasSubstr("waits for ever for")));
    programs.ranks.resize(3);
    EXPECT_THAT(simulated, ThrowsMessage<InputError>(HasSubstr("3 ranks does not fit on machine 'plain'")));
}

}  // namespace
}  // namespace rehearse::sim
