// SPDX-License-Identifier: Apache-2.0
// A rank's part against core's rounds: together the parts are the collective, and nothing else.
#include "kernels/comm/program.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "core/error.hpp"
#include "kernels/comm/idle.hpp"

namespace rehearse::kernels {
namespace {

TEST(RankProgram, OfRankOneInARingOfThreeIsWrittenByHand) {
    // Three elements, one a chunk: rank 1 sends chunk 0, then 2 (both summed), then spreads 1 and 0.
    const RankProgram program{all_reduce({}, {3, 3}, 3), 1};
    ASSERT_EQ(program.rounds.size(), 4U);
    const std::vector<std::int64_t> sent{0, 2, 1, 0};
    const std::vector<std::int64_t> received{2, 1, 0, 2};
    for (std::size_t i = 0; i < 4; ++i) {
        SCOPED_TRACE(i);
        const auto& round = program.rounds[i];
        ASSERT_EQ(round.sends.size(), 1U);
        EXPECT_EQ(round.sends[0].peer, 2);
        EXPECT_EQ(round.sends[0].pieces[0].begin, sent[i]);
        ASSERT_EQ(round.receives.size(), 1U);
        EXPECT_EQ(round.receives[0].add, i < 2);
        EXPECT_EQ(round.receives[0].peer, 0);
        EXPECT_EQ(round.receives[0].pieces[0].begin, received[i]);
        EXPECT_FALSE(round.overlaps);
    }
}

TEST(RankProgram, EverySendMeetsOneReceiveOfTheSameSizeInTheSameOrder) {
    for (const CollectiveKind kind : collective_kinds()) {
        for (const AlgorithmName& name : algorithms(kind)) {
            for (const std::int64_t n : {1, 2, 3, 4, 6, 8}) {
                SCOPED_TRACE(fmt::format("{} {} on {}", to_string(kind), name.name, n));
                const bool parts = name.name.find('(') != std::string_view::npos;
                const std::string text = parts ? "hierarchical(ring,halving)" : std::string{name.name};
                const Collective collective{kind, parse_algorithm(text, kind), {n, n % 2 == 0 ? 2 : 1}, 100};
                std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> sent, received;
                for (std::int64_t rank = 0; rank < n; ++rank) {
                    for (const auto& round : RankProgram{collective, rank}.rounds) {
                        for (const auto& message : round.sends) sent[{rank, message.peer}].push_back(message.count);
                        for (const auto& message : round.receives) {
                            received[{message.peer, rank}].push_back(message.count);
                        }
                    }
                }
                EXPECT_EQ(sent, received);
                EXPECT_EQ(sent.empty(), n == 1);
            }
        }
    }
}

TEST(RankProgram, SaysWhereARankReceivesIntoWhatItSends) {
    const auto overlaps = [](CollectiveKind kind, const char* algorithm) {
        for (const auto& round : RankProgram{{kind, parse_algorithm(algorithm, kind), {4, 4}, 400}, 1}.rounds) {
            if (round.overlaps) return true;
        }
        return false;
    };
    using enum CollectiveKind;
    EXPECT_TRUE(overlaps(all_reduce, "doubling"));  // both ends send everything
    EXPECT_TRUE(overlaps(all_to_all, "bruck"));     // blocks are passed on through the same slots
    EXPECT_FALSE(overlaps(all_reduce, "ring"));
    EXPECT_FALSE(overlaps(all_reduce, "halving"));
    EXPECT_FALSE(overlaps(all_to_all, "pairwise"));
}

TEST(RankProgram, JoinsNeighboursInMemoryToOnePiece) {
    // Bruck's last round on four ranks: blocks 2 and 3 lie apart in rank 0's memory.
    const auto kind = CollectiveKind::all_to_all;
    const RankProgram bruck{{kind, parse_algorithm("bruck", kind), {4, 4}, 8}, 0};
    ASSERT_EQ(bruck.rounds.size(), 2U);
    EXPECT_EQ(bruck.rounds[0].moves.size(), 1U);
    ASSERT_EQ(bruck.rounds[1].sends.size(), 1U);
    EXPECT_EQ(bruck.rounds[1].sends[0].pieces.size(), 2U);
    EXPECT_EQ(bruck.rounds[1].sends[0].count, 4);
    EXPECT_EQ(bruck.slots, 8);
}

TEST(RankProgram, OfAnEmptyBufferHasNoRounds) {
    EXPECT_TRUE((RankProgram{all_reduce({}, {4, 4}, 0), 2}.rounds.empty()));
}

TEST(Naps, BesideComputationAreAnEighthOfTheWait) {
    using namespace std::chrono_literals;
    EXPECT_EQ(nap_beside(0us), 50us);
    EXPECT_EQ(nap_beside(1600us), 200us);
    EXPECT_EQ(nap_beside(1s), 400us);
}

}  // namespace
}  // namespace rehearse::kernels
