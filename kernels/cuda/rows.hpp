// SPDX-License-Identifier: Apache-2.0
// Row by row, a block each: normalization, softmax and its loss. A row is whatever is summed together: of layer
// normalization and softmax what lies together, of batch normalization a channel of all images.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Where the values of a row lie: `pieces` of `area`, each `stride` behind the one before.
struct Rows {
    std::int64_t rows = 0, pieces = 1, area = 1, stride = 0;
    REHEARSE_BOTH std::int64_t size() const { return pieces * area; }
    REHEARSE_BOTH std::int64_t at(std::int64_t row, std::int64_t i) const {
        const std::int64_t piece = i / area;
        return piece * stride + row * area + i - piece * area;
    }
    REHEARSE_BOTH std::int64_t row_of(std::int64_t index) const { return index / area % rows; }
};

/// Mean and biased variance of each row, and with `state` {running means, running variances} moved towards them.
struct Statistics : RowWise<2> {
    Rows of;
    Values src;
    float* mean = nullptr;
    float* variance = nullptr;
    float* state = nullptr;
    float momentum = 0;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t row = block.x, size = of.size();
        team.each([&](int thread, auto&) {
            float total = 0;
            for (std::int64_t i = thread; i < size; i += threads) total += src.at(of.at(row, i));
            team.shared().of[0][thread] = total;
        });
        this->add_up(team, 0);
        team.each([&](int thread, auto&) {
            const float centre = team.shared().of[0][0] / static_cast<float>(size);
            float total = 0;
            for (std::int64_t i = thread; i < size; i += threads) {
                const float away = src.at(of.at(row, i)) - centre;
                total += away * away;
            }
            team.shared().of[1][thread] = total;
        });
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            if (thread == 0) finish(row, team.shared().of[0][0], team.shared().of[1][0]);
        });
    }

private:
    REHEARSE_BOTH void finish(std::int64_t row, float values, float squares) const {
        const auto count = static_cast<float>(of.size());
        mean[row] = values / count;
        variance[row] = squares / count;
        if (state == nullptr) return;
        const float unbiased = squares / (count > 1 ? count - 1 : 1);
        state[row] += momentum * (mean[row] - state[row]);
        state[rows + row] += momentum * (unbiased - state[rows + row]);
    }
};

/// dst = (src - mean) / deviation * gamma + beta (+ add) (, then ReLU). gamma and beta are a row's, or a column's.
struct Normalize : PointWise {
    Rows of;
    Values src, add, weights, dst;
    const float* mean = nullptr;
    const float* variance = nullptr;
    float epsilon = 0;
    std::int64_t parameters = 1;
    bool by_column = false, relu = false;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t row = of.row_of(i), p = by_column ? i % of.area : row;
            const float normal = (src.at(i) - mean[row]) / std::sqrt(variance[row] + epsilon);
            float result = normal * weights.at(p) + weights.at(parameters + p);
            if (add) result += add.at(i);
            dst.put(i, relu && result < 0 ? 0.0F : result);
        });
    }
};

/// What both of a norm's backward tasks see. `dst` is forward's, where a fused ReLU hides what was negative.
struct NormGradient {
    Rows of;
    Values src, diff, weights, dst;
    const float* mean = nullptr;
    const float* variance = nullptr;
    float epsilon = 0;

    REHEARSE_BOTH float normal(std::int64_t row, std::int64_t i) const {
        return (src.at(i) - mean[row]) / std::sqrt(variance[row] + epsilon);
    }
    REHEARSE_BOTH float gradient(std::int64_t i) const { return dst && dst.at(i) <= 0 ? 0.0F : diff.at(i); }
};

/// Of each row, sums of gradient times normal and of the gradient: those of gamma and beta of batch normalization.
struct GradientSums : RowWise<2>, NormGradient {
    float* sums = nullptr;  // {2, rows}
    Values diff_weights;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t row = block.x;
        team.each([&](int thread, auto&) {
            float with_normal = 0, alone = 0;
            for (std::int64_t i = thread; i < of.size(); i += threads) {
                const std::int64_t at = of.at(row, i);
                const float g = gradient(at);
                with_normal += g * normal(row, at);
                alone += g;
            }
            team.shared().of[0][thread] = with_normal;
            team.shared().of[1][thread] = alone;
        });
        this->add_up(team, 0);
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            if (thread > 1) return;
            sums[thread * rows + row] = team.shared().of[thread][0];
            diff_weights.put(thread * rows + row, team.shared().of[thread][0]);
        });
    }
};

/// d x = gamma / deviation (g - d beta / N - normal d gamma / N), and g itself for a shortcut.
struct NormBackward : PointWise, NormGradient {
    const float* sums = nullptr;
    Values diff_src, diff_add;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t row = of.row_of(i);
            const float g = gradient(i), size = static_cast<float>(of.size());
            if (diff_add) diff_add.put(i, g);
            if (!diff_src) return;
            const float rest = g - (sums[of.rows + row] + normal(row, i) * sums[row]) / size;
            diff_src.put(i, weights.at(row) / std::sqrt(variance[row] + epsilon) * rest);
        });
    }
};

/// Layer normalization: with h = g gamma, d x = (h - mean h - normal mean (h normal)) / deviation.
struct LayerBackward : RowWise<2>, NormGradient {
    Values diff_src;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t row = block.x;
        team.each([&](int thread, auto&) {
            float alone = 0, with_normal = 0;
            for (std::int64_t i = thread; i < of.area; i += threads) {
                const std::int64_t at = of.at(row, i);
                const float h = diff.at(at) * weights.at(i);
                alone += h;
                with_normal += h * normal(row, at);
            }
            team.shared().of[0][thread] = alone;
            team.shared().of[1][thread] = with_normal;
        });
        this->add_up(team, 0);
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            const float size = static_cast<float>(of.area), deviation = std::sqrt(variance[row] + epsilon);
            const float mean_h = team.shared().of[0][0] / size, mean_hx = team.shared().of[1][0] / size;
            for (std::int64_t i = thread; i < of.area; i += threads) {
                const std::int64_t at = of.at(row, i);
                diff_src.put(at, (diff.at(at) * weights.at(i) - mean_h - normal(row, at) * mean_hx) / deviation);
            }
        });
    }
};

/// Gradients of layer normalization's gamma and beta, a thread a column.
struct ColumnSums : PointWise, NormGradient {
    Values diff_weights;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t column) {
            float with_normal = 0, alone = 0;
            for (std::int64_t row = 0; row < of.rows; ++row) {
                const std::int64_t at = row * of.area + column;
                with_normal += diff.at(at) * normal(row, at);
                alone += diff.at(at);
            }
            diff_weights.put(column, with_normal);
            diff_weights.put(of.area + column, alone);
        });
    }
};

/// Rows of `classes` scores that lie `step` apart; row r begins at r / inner * outer + r % inner.
struct Scores {
    Values src;
    std::int64_t classes = 1, step = 1, inner = 1, outer = 1;
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
        const auto [largest, total] = this->exponentials(team, *this, begin);
        const std::int32_t label = labels[block.x];
        const bool known = label >= 0 && label < classes;
        const float weight = !known ? NAN : class_weights != nullptr ? class_weights[label] : 1.0F;
        team.alone([&, largest = largest, total = total](int thread, auto&) {
            if (loss != nullptr && thread == 0) {
                const float score = known ? src.at(begin + label * step) : 0.0F;
                loss[block.x] = weight * (largest - score + std::log(total));
            }
            for (std::int64_t i = thread; diff_src && i < classes; i += threads) {
                const float p = std::exp(src.at(begin + i * step) - largest) / total;
                diff_src.put(begin + i * step, weight * (p - (i == label ? 1.0F : 0.0F)) * share);
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
