// SPDX-License-Identifier: Apache-2.0
// What the reference takes from ranks that sent bits: what rounding decided, and nothing else.
#include "run/reference/followed.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/methods/compression.hpp"
#include "run/methods/compression.hpp"

namespace rehearse::run {
namespace {

using testing::ElementsAre;

float word(std::uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(FollowedSigns, TurnWhatIsWithinReachOfZero) {
    std::vector<float> values{1e-9F, -1e-9F, 0, 0.5F, -0.5F, 2};
    const std::vector<float> sent{word(0b011101)}, reach(6, 1e-8F);  // below 0: the first, third, fourth and fifth
    follow_signs(values, sent, reach);
    const float least = -std::numeric_limits<float>::min();
    EXPECT_THAT(values, ElementsAre(least, 0, least, 0.5F, -0.5F, 2)) << "0.5 was sent as below 0, and is not followed";
}

TEST(FollowedSigns, StayWithoutReach) {
    std::vector<float> values{1e-30F, -1e-30F};
    follow_signs(values, std::vector{word(0b01)}, std::vector<float>(2));
    EXPECT_THAT(values, ElementsAre(1e-30F, -1e-30F));
}

/// The indices that compress then sends of eight values, two of them.
std::vector<std::uint32_t> largest_of(std::vector<float> values, const std::vector<std::uint32_t>& sent, float reach) {
    std::vector<float> words(4);
    words[0] = word(sent[0]);
    words[1] = word(sent[1]);
    follow_largest(values, words, std::vector<float>(values.size(), reach));
    compress({.kind = Compression::Kind::top, .share = 0.25}, values, words);
    return {std::bit_cast<std::uint32_t>(words[0]), std::bit_cast<std::uint32_t>(words[1])};
}

TEST(FollowedLargest, AreThoseThatWereSentWithinReach) {
    const std::vector<float> values{0, 3, -1, 0.25F, 1.000001F, 0, 0.5F, 0};
    EXPECT_THAT(largest_of(values, {1, 4}, 0), ElementsAre(1, 4)) << "as the values say";
    EXPECT_THAT(largest_of(values, {1, 2}, 1e-5F), ElementsAre(1, 2)) << "-1 and 1.000001 are equal but for rounding";
    EXPECT_THAT(largest_of(values, {1, 2}, 1e-7F), ElementsAre(1, 4)) << "beyond rounding";
    EXPECT_THAT(largest_of(values, {2, 4}, 1e-5F), testing::Contains(1)) << "3 is by no rounding smaller";
}

TEST(FollowedLargest, OfEqualValuesMayBeAny) {
    EXPECT_THAT(largest_of({1, 1, 1, 1, 0, 0, 0, 0}, {2, 3}, 1e-6F), ElementsAre(2, 3));
}

TEST(Followed, IsReadInTurnAndEnds) {
    const AllSent all{{{RankIndex{1}, 0}, {{1}, {2}}}};
    AllSent decided;
    Followed followed{all, decided, 0};
    EXPECT_TRUE(followed.next(RankIndex{0}, 0).empty());
    EXPECT_THAT(followed.next(RankIndex{1}, 0), ElementsAre(1));
    EXPECT_THAT(followed.next(RankIndex{1}, 0), ElementsAre(2));
    EXPECT_TRUE(followed.next(RankIndex{1}, 0).empty());
    EXPECT_THAT(followed.reach(std::vector<float>{3}), ElementsAre(3));
}

TEST(Followed, OfChangedWeightsIsWhatTheReferenceDecided) {
    const AllSent sent{{{RankIndex{0}, 0}, {signs_of(std::vector<float>{1, -1})}}};
    AllSent decided;
    Followed{sent, decided, 0}.decide(RankIndex{0}, 0, signs_of(std::vector<float>{-1, -1}));
    Followed changed{sent, decided, 2};
    const std::span<const float> next = changed.next(RankIndex{0}, 0);
    ASSERT_EQ(next.size(), 1);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(next[0]), 0b11U);
    EXPECT_THAT(changed.reach(std::vector<float>{3}), ElementsAre(std::numeric_limits<float>::infinity()));
}

}  // namespace
}  // namespace rehearse::run
