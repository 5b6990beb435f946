// SPDX-License-Identifier: Apache-2.0
// Losses of rows, of what is left out, of ranks that hold some of the classes, and of means: worked out by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

// Of six rows four ask for something: the loss and the gradients are those of the four alone.
TEST(SoftmaxLossByRows, LeavesOutLabelsBelowZero) {
    const Backend& loops = reference::backend();
    Tensors all{SoftmaxLoss{.classes = 3, .rows = 3}, 2, loops}, asking{SoftmaxLoss{.classes = 3, .rows = 2}, 2, loops};
    all.labels = {1, -1, 2, 0, 2, -1};
    asking.labels = {1, 2, 0, 2};
    const std::vector<std::int64_t> rows{0, 2, 3, 4};
    for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t c = 0; c < 3; ++c) asking.src[0][i * 3 + c] = all.src[0][rows[i] * 3 + c];
    all.run_forward_and_backward(loops);
    asking.run_forward_and_backward(loops);
    EXPECT_NEAR(all.dst[0] + all.dst[1], asking.dst[0] + asking.dst[1], 1e-6);
    for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t c = 0; c < 3; ++c)
            EXPECT_NEAR(all.diff_src[0][rows[i] * 3 + c], asking.diff_src[0][i * 3 + c], 1e-7);
    for (const std::int64_t left_out : {1, 5})
        for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(all.diff_src[0][left_out * 3 + c], 0);
}

// Of a sample's mean m the terms (0, 1, -m) are the loss m, whose gradient is that of the score turned round.
TEST(TermsLossOfAMean, IsTheMean) {
    Tensors loss{TermsLoss{1, 1}, 2, reference::backend()};
    loss.src[0] = {0, 1, -0.75F, 0, 1, 2.5F};
    loss.run_forward_and_backward(reference::backend());
    EXPECT_THAT(loss.dst, ElementsAre(FloatEq(0.75F), FloatEq(-2.5F)));
    EXPECT_THAT(loss.diff_src[0], ElementsAre(0, FloatEq(0.5F), FloatEq(-0.5F), 0, FloatEq(0.5F), FloatEq(-0.5F)));
}

// The loss and the gradient of all `words` classes on one rank, made of the terms of `parts` ranks with `classes`
// places each. Places beyond the words have scores, too, which count for nothing. `label`: the score of each label, in
// place of its own.
void expect_whole_loss(std::int64_t words, std::int64_t classes, std::int64_t parts, std::optional<float> label = {}) {
    const std::int64_t rows = 5, batch = 2;
    const Backend& loops = reference::backend();
    Tensors whole{SoftmaxLoss{.classes = words, .rows = rows}, batch, loops};
    for (std::int64_t row = 0; row < batch * rows && label; ++row)
        whole.src[0][row * words + whole.labels[row]] = *label;
    whole.run_forward_and_backward(loops);
    Tensors loss{TermsLoss{rows, parts}, batch, loops};
    std::vector<Tensors> ranks;
    const auto place = [&](std::int64_t row, std::int64_t rank, std::int64_t i) {
        return rank * classes + i < words ? row * words + rank * classes + i : -1;
    };
    for (std::int64_t rank = 0; rank < parts; ++rank) {
        Tensors& own = ranks.emplace_back(SoftmaxTerms{classes, rows, parts, words}, batch, loops);
        own.first_row = rank * classes;
        own.labels = whole.labels;
        for (std::int64_t row = 0; row < batch * rows; ++row) {
            for (std::int64_t i = 0; i < classes; ++i) {
                const std::int64_t from = place(row, rank, i);
                own.src[0][row * classes + i] = from < 0 ? 1000 : whole.src[0][from];
            }
        }
        own.run(loops, Pass::forward);
        for (std::int64_t row = 0; row < batch * rows; ++row)
            for (std::int64_t i = 0; i < 3; ++i) loss.src[0][(row * parts + rank) * 3 + i] = own.dst[row * 3 + i];
    }
    loss.run_forward_and_backward(loops);
    for (std::int64_t n = 0; n < batch; ++n) EXPECT_NEAR(loss.dst[n], whole.dst[n], 1e-6);
    for (std::int64_t rank = 0; rank < parts; ++rank) {
        Tensors& own = ranks[rank];
        for (std::int64_t row = 0; row < batch * rows; ++row)
            for (std::int64_t i = 0; i < 3; ++i)
                own.diff_dst[row * 3 + i] = loss.diff_src[0][(row * parts + rank) * 3 + i];
        own.run(loops, Pass::backward_data);
        for (std::int64_t row = 0; row < batch * rows; ++row) {
            for (std::int64_t i = 0; i < classes; ++i) {
                const std::int64_t from = place(row, rank, i);
                const float expected = from < 0 ? 0 : whole.diff_src[0][from];
                const double close = from < 0 ? 0 : std::min(1e-7, 8 * 0x1p-24 * std::abs(expected));
                EXPECT_NEAR(own.diff_src[0][row * classes + i], expected, close);
            }
        }
    }
}

TEST(SoftmaxTerms, OfAllRanksMakeTheWholeLoss) { expect_whole_loss(12, 4, 3); }

// Of what is left to 1 a difference of f32 numbers would keep no digit. The three terms are rounded, and their
// gradients.
TEST(SoftmaxTerms, OfNearlyCertainLabelsKeepTheDigitsOfTheRest) { expect_whole_loss(12, 4, 3, 14.3F); }

// Five classes on three ranks with two places each, of which the last is empty; then with four each, of which the last
// rank has none at all.
TEST(SoftmaxTerms, OfPlacesWithoutAClassCountForNothing) {
    expect_whole_loss(5, 2, 3);
    expect_whole_loss(5, 4, 3);
}

TEST(SequenceLoss, OfEqualScoresIsTheLogarithmOfTheClasses) {
    const SoftmaxLoss op{.classes = 8, .rows = 4};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 2, *backend};
        std::ranges::fill(t.src[0], 3.0F);
        t.run_forward_and_backward(*backend);
        EXPECT_THAT(t.dst, ElementsAre(FloatEq(std::log(8.0F)), FloatEq(std::log(8.0F))));
        // (1/8 - [label]) / (4 rows of 2 samples).
        for (std::size_t i = 0; i < t.diff_src[0].size(); ++i) {
            const bool label = t.labels[i / 8] == static_cast<std::int32_t>(i % 8);
            EXPECT_FLOAT_EQ(t.diff_src[0][i], (0.125F - (label ? 1.0F : 0.0F)) / 8);
        }
    }
}

}  // namespace
}  // namespace rehearse::kernels
