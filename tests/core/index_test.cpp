// SPDX-License-Identifier: Apache-2.0
#include "core/index.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse {
namespace {

template <typename A, typename B>
concept Comparable = requires(A a, B b) {
    a == b;
};

static_assert(!std::is_constructible_v<BucketIndex, LayerIndex>, "a layer is no bucket, not even when asked to be");
static_assert(!std::is_assignable_v<AxisIndex&, LayerIndex>, "nor is it an axis");
static_assert(!std::is_assignable_v<decltype(Update::bucket)&, decltype(Compute::layer)>, "in actions neither");
static_assert(!std::is_convertible_v<int, LayerIndex>, "a number says what it is an index of");
static_assert(!std::is_assignable_v<decltype(Event::rank)&, StageIndex>, "nor is a stage a rank");
static_assert(!std::is_invocable_v<decltype(shard_of), const Mesh&, std::int64_t>, "nor is a number of anything");
static_assert(std::is_same_v<decltype(RankIndex{3} * 1), std::int64_t>, "places of ranks times sizes do not overflow");
static_assert(std::is_constructible_v<LayerIndex, std::size_t>);
static_assert(std::is_convertible_v<LayerIndex, std::size_t>, "containers take it");
static_assert(Comparable<LayerIndex, LayerIndex> && Comparable<LayerIndex, int>);
static_assert(!Comparable<LayerIndex, BucketIndex>, "places in two lists are never the same");

TEST(Index, IsOfNoneUntilItIsMadeOfANumber) {
    EXPECT_LT(LayerIndex{}, 0);
    const std::vector<int> list{5, 6, 7};
    EXPECT_EQ(list[LayerIndex{2}], 7);
    EXPECT_EQ(list[at(LayerIndex{std::size_t{1}})], 6);
}

TEST(Communicate, IsOfABucketOrOfALayer) {
    const Communicate gradients{.algorithm = {}, .of = BucketIndex{3}}, output{.algorithm = {}, .of = LayerIndex{3}};
    EXPECT_TRUE(gradients.of_bucket());
    EXPECT_EQ(gradients.bucket(), 3);
    EXPECT_FALSE(output.of_bucket());
    EXPECT_EQ(output.layer(), 3);
    EXPECT_THROW((void)output.bucket(), std::bad_variant_access);
}

}  // namespace
}  // namespace rehearse
