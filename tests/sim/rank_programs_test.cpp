// SPDX-License-Identifier: Apache-2.0
// Schedules as what every rank does. Oracle: what a plan means, counted by hand.
#include "sim/rank_programs.hpp"

#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "core/error.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"

namespace rehearse::sim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Kind = ProgramNode::Kind;

RankPrograms programs_of(const std::string& plan, std::int64_t devices, Collectives_as how) {
    const Machine machine = models::load_machine("summit");
    const Network network = models::load_network("lenet5");
    const Schedule schedule = make_schedule(network, machine, schedule::parse_plan(plan), {.devices = devices});
    return rank_programs(schedule, machine, how);
}

std::int64_t count(const std::vector<ProgramNode>& nodes, Kind kind) {
    return std::ranges::count(nodes, kind, &ProgramNode::kind);
}

TEST(RankPrograms, OfDataParallelismSumTheGradientsOnce) {
    const RankPrograms programs = programs_of("data:bucket=1GB:first=1GB", 4, Collectives_as::calls);
    ASSERT_EQ(programs.ranks.size(), 4U);
    const std::vector<RankIndex> all{RankIndex{0}, RankIndex{1}, RankIndex{2}, RankIndex{3}};
    EXPECT_EQ(programs.groups, (std::vector<std::vector<RankIndex>>{all}));
    for (const std::vector<ProgramNode>& nodes : programs.ranks) {
        EXPECT_EQ(nodes, programs.ranks.front()) << "all do the same";
        ASSERT_EQ(count(nodes, Kind::collective), 1);
        const auto sum = std::ranges::find(nodes, Kind::collective, &ProgramNode::kind);
        const Network network = models::load_network("lenet5");
        EXPECT_EQ(sum->bytes.value, 4 * static_cast<double>(parameters(network)));
        EXPECT_EQ(sum->collective, CollectiveKind::all_reduce);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            for (const int before : nodes[i].after) EXPECT_LT(before, static_cast<int>(i));
        }
    }
}

// A ring of n ranks takes 2 (n - 1) rounds, in which each sends 2 (n - 1) / n of the data; three cards of Summit have
// two rings, one each way. What one sends another receives, tag by tag.
TEST(RankPrograms, HaveTheMessagesOfCollectives) {
    const RankPrograms programs = programs_of("data:bucket=1GB:first=1GB:allreduce=ring", 3, Collectives_as::messages);
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<double>> sent, received;
    for (std::size_t rank = 0; rank < programs.ranks.size(); ++rank) {
        const auto own = static_cast<std::int64_t>(rank);
        EXPECT_EQ(count(programs.ranks[rank], Kind::collective), 0);
        EXPECT_EQ(count(programs.ranks[rank], Kind::send), 2 * 4);
        double bytes = 0;
        for (const ProgramNode& node : programs.ranks[rank]) {
            if (node.kind == Kind::send) bytes += node.bytes.value;
            if (node.kind == Kind::send) sent[{own, node.peer, node.tag}].push_back(node.bytes.value);
            if (node.kind == Kind::receive) received[{node.peer, own, node.tag}].push_back(node.bytes.value);
        }
        const double whole = 4 * static_cast<double>(parameters(models::load_network("lenet5")));
        EXPECT_NEAR(bytes, 4.0 / 3 * whole, 16 * 4) << "parts differ by an element";
    }
    EXPECT_EQ(sent, received);
}

TEST(RankPrograms, OfAPipelineSendActivationsAndGradients) {
    const RankPrograms programs = programs_of("pipe=2:microbatches=2", 2, Collectives_as::calls);
    for (const std::vector<ProgramNode>& nodes : programs.ranks) {
        EXPECT_EQ(count(nodes, Kind::send), 2);
        EXPECT_EQ(count(nodes, Kind::receive), 2);
    }
    EXPECT_NE(programs.ranks[0], programs.ranks[1]);
}

TEST(RankPrograms, AreRefusedWhereOthersHaveNoWords) {
    EXPECT_THAT([] { programs_of("server=1,data=2", 3, Collectives_as::calls); },
                ThrowsMessage<InputError>(HasSubstr("servers has no form in other simulators")));
}

}  // namespace
}  // namespace rehearse::sim
