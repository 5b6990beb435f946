// SPDX-License-Identifier: Apache-2.0
// Operators of transformers on cases worked out by hand, on every backend that has them.
#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

#include "core/error.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(AttentionByHand, OfOneKeyIsItsValue) {
    const Attention op{3, 5, 1, 4};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 2, *backend};
        t.run(*backend, Pass::forward);
        for (std::size_t i = 0; i < t.dst.size(); ++i) {
            const std::size_t sample = i / 60;
            EXPECT_EQ(t.dst[i], t.src[2][sample * 12 + i % 12]) << i;
        }
        t.run(*backend, Pass::backward_data);
        EXPECT_THAT(t.diff_src[0], Each(0)) << "a softmax of one number is 1 whatever the number";
        EXPECT_THAT(t.diff_src[1], Each(0));
    }
}

TEST(AttentionByHand, OfEqualScoresIsTheMeanOfTheValues) {
    const Attention op{2, 3, 8, 4};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 1, *backend};
        std::ranges::fill(t.src[0], 0.0F);
        t.run(*backend, Pass::forward);
        for (std::size_t i = 0; i < t.dst.size(); ++i) {
            float sum = 0;
            for (std::size_t j = 0; j < 8; ++j) sum += t.src[2][j * 8 + i % 8];
            EXPECT_EQ(t.dst[i], sum / 8) << i;
        }
    }
}

// A score that leads by more than 104 leaves nothing to the others in f32: exp(-104) is below the smallest number.
TEST(AttentionByHand, OfALeadingScoreSelectsItsValue) {
    for (const std::int64_t keys : {5, 300}) {  // the leader in another block of keys than the first
        const Attention op{1, 2, keys, 4};
        for (const Backend* backend : backends_of(op)) {
            SCOPED_TRACE(full_name(*backend));
            Tensors t{op, 1, *backend};
            std::ranges::fill(t.src[0], 16.0F);  // a score is 8 times the sum of the key
            std::ranges::fill(t.src[1], 0.0F);
            std::ranges::fill(t.src[1].end() - 8, t.src[1].end() - 4, 4.0F);  // the last key but one: 128
            t.run(*backend, Pass::forward);
            for (std::size_t i = 0; i < t.dst.size(); ++i) EXPECT_EQ(t.dst[i], t.src[2][(keys - 2) * 4 + i % 4]);
        }
    }
}

TEST(AttentionByHand, ThatIsCausalHidesLaterKeys) {
    // Equal scores: query i of 4 is the mean of the first i + 1 values, 1, 2, 4 and 8 of them with 5 more keys.
    for (const std::int64_t more : {0, 4}) {
        const Attention op{1, 4, 4 + more, 1, true};
        for (const Backend* backend : backends_of(op)) {
            SCOPED_TRACE(full_name(*backend));
            Tensors t{op, 1, *backend};
            std::ranges::fill(t.src[0], 0.0F);
            for (std::size_t j = 0; j < t.src[2].size(); ++j) t.src[2][j] = static_cast<float>(j);
            t.run(*backend, Pass::forward);
            for (std::int64_t i = 0; i < 4; ++i) {
                EXPECT_FLOAT_EQ(t.dst[i], static_cast<float>(i + more) / 2) << "the mean of 0 .. i + more";
            }
            t.run(*backend, Pass::backward_data);
            EXPECT_EQ(t.diff_src[2].back(), t.diff_dst[3] / static_cast<float>(4 + more)) << "seen by the last query";
        }
    }
}

TEST(AttentionByHand, ThatIsPackedIsThatOfTheThreeParts) {
    const Attention packed{2, 3, 3, 4, false, true};
    for (const Backend* backend : backends_of(packed)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors one{packed, 2, *backend};
        Attention apart = packed;
        apart.packed = false;
        Tensors three{apart, 2, *backend};
        for (std::size_t row = 0; row < 6; ++row) {
            for (std::size_t part = 0; part < 3; ++part) {
                std::copy_n(one.src[0].begin() + static_cast<std::ptrdiff_t>(row * 24 + part * 8), 8,
                            three.src[part].begin() + static_cast<std::ptrdiff_t>(row * 8));
            }
        }
        one.run_forward_and_backward(*backend);
        three.run_forward_and_backward(*backend);
        EXPECT_EQ(one.dst, three.dst);
        for (std::size_t i = 0; i < one.diff_src[0].size(); ++i) {
            ASSERT_EQ(one.diff_src[0][i], three.diff_src[i / 8 % 3][i / 24 * 8 + i % 8]) << i;
        }
    }
}

// Of four heads the first two and the last two read the same keys and values, whose gradients are the sums of both.
TEST(AttentionByHand, OfSharedKeysIsThatOfKeysRepeated) {
    Attention shared{4, 3, 5, 2, true};
    shared.key_heads = 2;
    Attention own = shared;
    own.key_heads = 0;
    const Backend& backend = reference::backend();
    Tensors few{shared, 2, backend}, many{own, 2, backend};
    many.src[0] = few.src[0];
    const auto place = [](std::size_t i) { return i / 8 * 4 + i % 8 / 4 * 2 + i % 2; };  // of row i / 8, number i % 8
    for (const std::size_t part : {1U, 2U}) {
        for (std::size_t i = 0; i < many.src[part].size(); ++i) many.src[part][i] = few.src[part][place(i)];
    }
    few.run_forward_and_backward(backend);
    many.run_forward_and_backward(backend);
    EXPECT_EQ(few.dst, many.dst);
    EXPECT_EQ(few.diff_src[0], many.diff_src[0]);
    for (const std::size_t part : {1U, 2U}) {
        std::vector<float> sums(few.diff_src[part].size());
        for (std::size_t i = 0; i < many.diff_src[part].size(); ++i) sums[place(i)] += many.diff_src[part][i];
        for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(few.diff_src[part][i], sums[i], 1e-5) << i;
    }
    for (const Backend* other : backends()) {
        if (other == &backend) continue;
        const Support support = other->supports({shared, Pass::forward, 1, DataType::f32});
        EXPECT_TRUE(!support.yes || other->name() == backend.name()) << full_name(*other);
    }
}

TEST(LayerNormByHand, OfMinusOneAndOneIsGammaAndBeta) {
    const LayerNorm op{1, 4};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 1, *backend};
        t.src[0] = {-1, 1, -1, 1};
        t.weights = {1, 2, 3, 4, 10, 20, 30, 40};
        t.run(*backend, Pass::forward);
        const float normal = 1 / std::sqrt(1 + 1e-5F);  // mean 0, variance 1
        EXPECT_THAT(t.dst, ElementsAre(FloatEq(10 - normal), FloatEq(20 + 2 * normal), FloatEq(30 - 3 * normal),
                                       FloatEq(40 + 4 * normal)));
        t.src[0] = {7, 7, 7, 7};
        t.run(*backend, Pass::forward);
        EXPECT_THAT(t.dst, ElementsAre(10, 20, 30, 40));
    }
}

TEST(EmbeddingByHand, SumsTheRowsOfItsTables) {
    const Embedding op{2, 3, 2, 2, 2};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 2, *backend};
        t.indices = {2, 0, 2, 2};
        t.weights = {1, 2, 3, 4, 5, 6, /*positions*/ 10, 20, 30, 40, /*segments*/ 100, 200, 300, 400};
        t.run(*backend, Pass::forward);
        EXPECT_THAT(t.dst, ElementsAre(115, 226, 331, 442, 115, 226, 335, 446));
        t.diff_dst = {1, 2, 3, 4, 5, 6, 7, 8};
        t.run(*backend, Pass::backward_weights);
        EXPECT_THAT(t.diff_weights, ElementsAre(3, 4, 0, 0, 13, 16, 6, 8, 10, 12, 6, 8, 10, 12));
    }
}

TEST(EmbeddingBagByHand, SumsTheRowsOfEachBag) {
    const EmbeddingBag op{2, 2, 3, 1};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 1, *backend};
        t.indices = {0, 2, 1, 1};
        t.weights = {1, 2, 4, 8, 16, 32};
        t.run(*backend, Pass::forward);
        EXPECT_THAT(t.dst, ElementsAre(5, 32));
        t.diff_dst = {3, 7};
        t.run(*backend, Pass::backward_weights);
        EXPECT_THAT(t.diff_weights, ElementsAre(3, 0, 3, 0, 14, 0));
    }
}

// Two samples in one: the second one's ids and sums behind the first one's.
TEST(EmbeddingBagByHand, UpdatesTheRowsThatWerePicked) {
    const EmbeddingBag op{.tables = 2, .lookups = 1, .vocabulary = 3, .width = 1, .samples = 2, .direct = true};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 1, *backend};
        t.indices = {0, 2, 0, 1};
        t.weights = {1, 2, 4, 8, 16, 32};
        t.run(*backend, Pass::forward);
        EXPECT_THAT(t.dst, ElementsAre(1, 32, 1, 16));
        t.diff_dst = {2, 4, 6, 8};
        Buffers buffers = t.buffers();
        buffers.learning_rate = 0.5F;
        backend->prepare({op, Pass::backward_weights, 1, DataType::f32})->run(buffers);
        EXPECT_THAT(t.weights, ElementsAre(-3, 2, 4, 8, 12, 30));
    }
}

TEST(Tables, RefuseIdsThatAreNoRows) {
    const Embedding op{2, 3, 2};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        for (const std::int32_t wrong : {-1, 3}) {
            Tensors t{op, 1, *backend};
            t.indices = {1, wrong};
            EXPECT_THAT([&] { t.run(*backend, Pass::forward); },
                        ThrowsMessage<InputError>(HasSubstr("at place 1 of the batch is none of the table's 0 to 2")));
            EXPECT_THROW(t.run(*backend, Pass::backward_weights), InputError);
        }
        Tensors t{op, 1, *backend};
        t.indices = {1};
        EXPECT_THROW(t.run(*backend, Pass::forward), std::logic_error);
    }
}

// Tokens 0 and 1 choose expert 0, which takes one; token 2 chooses expert 1, nearly surely.
TEST(RoutingByHand, TakesTheFirstThatComeAndLeavesOutTheRest) {
    const Routing routing{.tokens = 3, .width = 2, .experts = 2};
    for (const Backend* backend : backends_of(DispatchTokens{routing})) {
        SCOPED_TRACE(full_name(*backend));
        Tensors go{DispatchTokens{routing}, 1, *backend};
        go.src = {{1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, -200, 0}};
        go.diff_dst = {10, 20, 30, 40};
        go.run_forward_and_backward(*backend);
        EXPECT_THAT(go.dst, ElementsAre(1, 2, 5, 6));
        EXPECT_THAT(go.diff_src[0], ElementsAre(10, 20, 0, 0, 30, 40));
        EXPECT_THAT(go.diff_src[1], Each(0));
        Tensors come{CombineTokens{routing}, 1, *backend};
        come.src = {{8, 6, 4, 2}, go.src[1]};
        come.diff_dst = {2, 4, 100, 100, 1, 3};
        come.run_forward_and_backward(*backend);
        EXPECT_THAT(come.dst, ElementsAre(4, 3, 0, 0, 4, 2));  // half of 8 and 6
        EXPECT_THAT(come.diff_src[0], ElementsAre(1, 2, 1, 3));
        // 2 x 8 + 4 x 6 = 40, times the softmax's slope, 1 / 4.
        EXPECT_THAT(come.diff_src[1], ElementsAre(10, -10, 0, 0, 0, 0));
    }
}

// Two samples compete. The second one's first choice, expert 1, comes before the first one's second choice of it.
TEST(RoutingByHand, TakesFirstChoicesBeforeSecondOnes) {
    const Routing routing{.tokens = 1, .width = 1, .experts = 2, .top = 2, .capacity = 1, .group = 2};
    for (const Backend* backend : backends()) {
        if (!backend->supports({DispatchTokens{routing}, Pass::forward, 2, DataType::f32}).yes) continue;
        SCOPED_TRACE(full_name(*backend));
        Tensors go{DispatchTokens{routing}, 2, *backend};
        go.src = {{3, 5}, {0, 0, -1, 0}};
        go.run(*backend, Pass::forward);
        EXPECT_THAT(go.dst, ElementsAre(3, 5));
        go.src[1] = {0, 0, 0, 0};  // now both want expert 0 first, and expert 1 second
        go.run(*backend, Pass::forward);
        EXPECT_THAT(go.dst, ElementsAre(3, 3));
        Tensors come{CombineTokens{routing}, 2, *backend};
        come.src = {{8, 4}, {0, 0, 0, 0}};
        come.run(*backend, Pass::forward);
        EXPECT_THAT(come.dst, ElementsAre(6, 0));
        EXPECT_FALSE(backend->supports({DispatchTokens{routing}, Pass::forward, 3, DataType::f32}).yes);
    }
}

// The three best of four experts: 3, 2 and 1 of the scores, none of which twice.
TEST(RoutingByHand, SendsATokenToMoreThanTwoExperts) {
    const Routing routing{.tokens = 1, .width = 1, .experts = 4, .top = 3, .capacity = 1};
    Tensors go{DispatchTokens{routing}, 1, reference::backend()};
    go.src = {{7}, {0, 5, 6, 4}};
    go.run(reference::backend(), Pass::forward);
    EXPECT_THAT(go.dst, ElementsAre(0, 7, 7, 7));
    Tensors come{CombineTokens{routing}, 1, reference::backend()};
    come.src = {{100, 3, 3, 3}, go.src[1]};
    come.run(reference::backend(), Pass::forward);
    EXPECT_THAT(come.dst, ElementsAre(FloatEq(3))) << "weights of the chosen sum to 1";
}

TEST(InteractionByHand, IsTheDenseVectorAndAllDotProducts) {
    Tensors t{Interaction{3, 2}, 1, reference::backend()};
    t.src = {{1, 2}, {3, 4, 5, 6}};
    t.run(reference::backend(), Pass::forward);
    EXPECT_THAT(t.dst, ElementsAre(1, 2, 1 * 3 + 2 * 4, 1 * 5 + 2 * 6, 3 * 5 + 4 * 6));
}

// Two ranks with half of a table each add up to what one with all of it gives; each has its half's gradient.
TEST(EmbeddingInParts, AddsUpToTheWhole) {
    const Embedding op{.tokens = 6, .vocabulary = 8, .width = 3, .positions = 6, .segments = 2};
    const std::int64_t half = op.vocabulary / 2 * op.width;
    Embedding part = op;
    part.vocabulary /= 2;
    part.parts = 2;
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors whole{op, 2, *backend};
        whole.run_forward_and_backward(*backend);
        std::vector<float> sum(whole.dst.size());
        for (std::int64_t rank = 0; rank < 2; ++rank) {
            Tensors own{part, 2, *backend};
            own.first_row = 4 * rank;
            own.indices = whole.indices;
            own.diff_dst = whole.diff_dst;
            std::copy_n(whole.weights.begin() + rank * half, half, own.weights.begin());
            std::copy(whole.weights.begin() + 2 * half, whole.weights.end(), own.weights.begin() + half);
            own.run_forward_and_backward(*backend);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own.dst[i];
            EXPECT_TRUE(std::equal(own.diff_weights.begin(), own.diff_weights.begin() + half,
                                   whole.diff_weights.begin() + rank * half));
            EXPECT_TRUE(std::equal(own.diff_weights.begin() + half, own.diff_weights.end(),
                                   whole.diff_weights.begin() + 2 * half));
        }
        EXPECT_EQ(sum, whole.dst);
    }
}

}  // namespace
}  // namespace rehearse::kernels
