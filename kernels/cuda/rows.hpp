// SPDX-License-Identifier: Apache-2.0
// Row by row, a block each: softmax and its loss, means, what is not finite.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Rows of `classes` scores that lie `step` apart; row r begins at r / inner * outer + r % inner.
struct Scores {
    Values src;
    std::int64_t classes = 1, step = 1;
    Divisor inner;
    std::int64_t outer = 1;
    REHEARSE_BOTH std::int64_t first(std::int64_t row) const { return row / inner * outer + row % inner; }
};

/// dst = softmax, or with a `diff` the gradient: dst_in (diff - sum of diff dst_in).
struct SoftmaxRow : RowWise<1>, Scores {
    Values diff, dst;  // backward: src is forward's result
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t begin = first(block.x);
        float* const shared = team.shared().of[0];
        if (diff) {
            team.each([&](int thread, auto&) {
                shared[thread] = 0;
                for (std::int64_t i = thread; i < classes; i += threads)
                    shared[thread] += diff.at(begin + i) * src.at(begin + i);
            });
            this->add_up(team, 0);
            team.alone([&](int thread, auto&) {
                for (std::int64_t i = thread; i < classes; i += threads) {
                    dst.put(begin + i, src.at(begin + i) * (diff.at(begin + i) - shared[0]));
                }
            });
            return;
        }
        const auto [largest, total] = this->exponentials(team, *this, begin);
        team.alone([&, largest = largest, total = total](int thread, auto&) {
            for (std::int64_t i = thread; i < classes; i += threads) {
                dst.put(begin + i, std::exp(src.at(begin + i) - largest) / total);
            }
        });
    }
};

/// Softmax cross-entropy of each row against its label: the loss of the row, or with `diff_src` its gradient times
/// `share`; both times the label's weight where there are any. Of a label that is no class: not a number.
struct RowLoss : RowWise<1>, Scores {
    Values diff_src;
    float* loss = nullptr;
    const std::int32_t* labels = nullptr;
    const float* class_weights = nullptr;
    float share = 1;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t begin = first(block.x);
        const std::int32_t label = labels[block.x];
        const bool known = label >= 0 && label < classes;
        // The gradient of a label that is nearly certain is what the others sum to: of p - 1 no digit would be left.
        const auto [largest, others] = this->exponentials(team, *this, begin, known ? label : -1);
        const float weight = !known ? NAN : class_weights != nullptr ? class_weights[label] : 1.0F;
        team.alone([&, largest = largest, others = others](int thread, auto&) {
            const float score = known ? src.at(begin + label * step) : largest;
            const float own = std::exp(score - largest), total = own + others;
            if (loss != nullptr && thread == 0) {
                loss[block.x] = weight * (own == 1 ? std::log1p(others) : largest - score + std::log(total));
            }
            for (std::int64_t i = thread; diff_src && i < classes; i += threads) {
                const float p = std::exp(src.at(begin + i * step) - largest) / total;
                diff_src.put(begin + i * step, weight * (i == label ? -others / total : p) * share);
            }
        });
    }
};

/// found[row] = how many of every rows-th run of `threads` values are infinite or no number.
struct Unfinite : RowWise<1> {
    Values values;
    std::int64_t count = 0;
    float* found = nullptr;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        team.each([&](int thread, auto&) {
            float bad = 0;
            for (std::int64_t i = block.x * threads + thread; i < count; i += rows * threads) {
                bad += std::isfinite(values.at(i)) ? 0.0F : 1.0F;
            }
            team.shared().of[0][thread] = bad;
        });
        this->add_up(team, 0);
        team.alone([&](int thread, auto&) {
            if (thread == 0) found[block.x] = team.shared().of[0][0];
        });
    }
};

/// dst[row] = mean of `size` values.
struct RowMeans : RowWise<1> {
    const float* values = nullptr;
    Values dst;
    std::int64_t size = 1;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        team.each([&](int thread, auto&) {
            float total = 0;
            for (std::int64_t i = thread; i < size; i += threads) total += values[block.x * size + i];
            team.shared().of[0][thread] = total;
        });
        this->add_up(team, 0);
        team.alone([&](int thread, auto&) {
            if (thread == 0) dst.put(block.x, team.shared().of[0][0] / static_cast<float>(size));
        });
    }
};

}  // namespace rehearse::kernels::cuda
