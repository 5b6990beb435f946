// SPDX-License-Identifier: Apache-2.0
// A rank's part against core's rounds: together the parts are the collective, and nothing else.
#include "kernels/comm/program.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "core/error.hpp"

namespace rehearse::kernels {
namespace {

TEST(AllReduceProgram, OfRankOneInARingOfThreeIsWrittenByHand) {
    // Three elements, one a chunk: rank 1 sends chunk 0, then 2 (both summed), then spreads 1 and 0.
    const AllReduceProgram program{all_reduce({}, {3, 3}, 3), 1};
    ASSERT_EQ(program.rounds.size(), 4U);
    const std::vector<std::int64_t> sent{0, 2, 1, 0};
    const std::vector<std::int64_t> received{2, 1, 0, 2};
    for (std::size_t i = 0; i < 4; ++i) {
        SCOPED_TRACE(i);
        const auto& round = program.rounds[i];
        ASSERT_EQ(round.sends.size(), 1U);
        EXPECT_EQ(round.sends[0].peer, 2);
        EXPECT_EQ(round.sends[0].begin, sent[i]);
        const auto& in = i < 2 ? round.sums : round.copies;
        ASSERT_EQ(in.size(), 1U);
        EXPECT_EQ((i < 2 ? round.copies : round.sums).size(), 0U);
        EXPECT_EQ(in[0].peer, 0);
        EXPECT_EQ(in[0].begin, received[i]);
    }
    EXPECT_EQ(program.scratch, 1);
}

TEST(AllReduceProgram, EverySendMeetsOneReceiveOfTheSameSizeInTheSameOrder) {
    for (const auto& text : {"ring", "doubling", "halving", "tree", "hierarchical(ring,halving)"}) {
        for (const std::int64_t n : {1, 2, 3, 4, 6, 8}) {
            SCOPED_TRACE(fmt::format("{} on {}", text, n));
            const Collective collective = all_reduce(parse_algorithm(text), {n, n % 2 == 0 ? 2 : 1}, 100);
            std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> sent, received;
            for (std::int64_t rank = 0; rank < n; ++rank) {
                for (const auto& round : AllReduceProgram{collective, rank}.rounds) {
                    for (const auto& part : round.sends) sent[{rank, part.peer}].push_back(part.count);
                    for (const auto& part : round.copies) received[{part.peer, rank}].push_back(part.count);
                    for (const auto& part : round.sums) received[{part.peer, rank}].push_back(part.count);
                }
            }
            EXPECT_EQ(sent, received);
            EXPECT_EQ(sent.empty(), n == 1);
        }
    }
}

TEST(AllReduceProgram, CutsMessagesThatMpiCouldNotCount) {
    // 3 * 2^30 elements between two ranks by doubling: more than an int holds, cut the same way at both ends.
    const std::int64_t elements = std::int64_t{3} << 30;
    const AllReduceProgram program{all_reduce(parse_algorithm("doubling"), {2, 2}, elements), 0};
    ASSERT_EQ(program.rounds.size(), 1U);
    std::int64_t next = 0;
    for (const auto& part : program.rounds[0].sends) {
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.count, std::int64_t{1} << 30);
        next += part.count;
    }
    EXPECT_EQ(next, elements);
    EXPECT_EQ(program.rounds[0].sums.size(), program.rounds[0].sends.size());
}

TEST(AllReduceProgram, OfAnEmptyBufferHasNoRounds) {
    EXPECT_TRUE((AllReduceProgram{all_reduce({}, {4, 4}, 0), 2}.rounds.empty()));
}

}  // namespace
}  // namespace rehearse::kernels
