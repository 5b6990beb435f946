// SPDX-License-Identifier: Apache-2.0
// Batch and layer normalization, and sums of channels: a row is whatever is summed together, of layer normalization
// what lies together, of batch normalization a channel of all images. Rows that are few are cut in parts, a block each,
// and joined in their order: the same bits every time on the same kind of GPU.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Where the values of a row lie: `pieces` of `area`, each `stride` behind the one before.
struct Rows {
    Divisor rows;
    std::int64_t pieces = 1;
    Divisor area;
    std::int64_t stride = 0;
    REHEARSE_BOTH std::int64_t size() const { return pieces * area; }
    REHEARSE_BOTH std::int64_t at(std::int64_t row, std::int64_t i) const {
        const std::int64_t piece = i / area;
        return piece * stride + row * area + i - piece * area;
    }
    REHEARSE_BOTH std::int64_t row_of(std::int64_t index) const { return index / area % rows; }
    /// Whether eight values of one row lie together, from each eighth on.
    REHEARSE_BOTH bool by_eights() const { return area % std::int64_t{8} == 0; }
};

/// A row in parts, each a block's, so that few long rows have many blocks; what they find is joined in their order.
/// Parts are of `share` values, a multiple of 8, the last of what is left.
struct Parts {
    std::int64_t parts = 1, share = 0;
    REHEARSE_BOTH std::int64_t begin(std::int64_t part) const { return part * share; }
    REHEARSE_BOTH std::int64_t end(std::int64_t part, std::int64_t size) const {
        return part + 1 < parts ? begin(part + 1) : size;
    }
    /// visit(Run<n>{}, place) for the thread's of values [begin, end) of a row, n of them from a place in memory on.
    template <typename F>
    static REHEARSE_BOTH void each(const Rows& of, std::int64_t row, std::int64_t begin, std::int64_t end, int thread,
                                   int at_once, F visit) {
        if (at_once == 8) return runs(Run<8>{}, of, row, begin + 8 * std::int64_t{thread}, end, visit);
        if (at_once == 4) return runs(Run<4>{}, of, row, begin + 4 * std::int64_t{thread}, end, visit);
        runs(Run<1>{}, of, row, begin + thread, end, visit);
    }

private:
    template <int n, typename F>
    static REHEARSE_BOTH void runs(Run<n> run, const Rows& of, std::int64_t row, std::int64_t first, std::int64_t end,
                                   F visit) {
        for (std::int64_t i = first; i < end; i += n * RunWise::threads) visit(run, of.at(row, i));
    }
};

/// Mean and biased variance of each row, and with `state` {running means, running variances} moved towards them.
struct RowStatistics : RowWise<2>, Parts {
    Rows of;
    float* mean = nullptr;
    float* variance = nullptr;
    float* state = nullptr;
    float* partial = nullptr;  // {parts, 2, rows}: mean, and squares of the distances from it
    float momentum = 0;

protected:
    REHEARSE_BOTH void finish(std::int64_t row, float centre, float squares) const {
        const auto count = static_cast<float>(of.size());
        mean[row] = centre;
        variance[row] = squares / count;
        if (state == nullptr) return;
        const float unbiased = squares / (count > 1 ? count - 1 : 1);
        state[row] += momentum * (centre - state[row]);
        state[rows + row] += momentum * (unbiased - state[rows + row]);
    }
};

struct Statistics : RowStatistics {
    static constexpr int resident = 5;
    Values src;
    REHEARSE_BOTH Blocks blocks() const { return {rows, parts}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t row = block.x, first = begin(block.y), last = end(block.y, of.size());
        const int at_once = of.by_eights() ? numbers_at_once(src) : 1;
        team.each([&](int thread, auto&) {
            float total = 0;
            Parts::each(of, row, first, last, thread, at_once, [&](auto run, std::int64_t at) {
                const auto values = src.load<decltype(run)::count>(at);
                REHEARSE_UNROLL
                for (const float value : values.of) total += value;
            });
            team.shared().of[0][thread] = total;
        });
        this->add_up(team, 0);
        team.each([&](int thread, auto&) {
            const float centre = team.shared().of[0][0] / static_cast<float>(last - first);
            float total = 0;
            Parts::each(of, row, first, last, thread, at_once, [&](auto run, std::int64_t at) {
                const auto values = src.load<decltype(run)::count>(at);
                REHEARSE_UNROLL
                for (const float value : values.of) total += (value - centre) * (value - centre);
            });
            team.shared().of[1][thread] = total;
        });
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            if (thread != 0) return;
            const float centre = team.shared().of[0][0] / static_cast<float>(last - first);
            if (parts == 1) return finish(row, centre, team.shared().of[1][0]);
            partial[2 * block.y * rows + row] = centre;
            partial[(2 * block.y + 1) * rows + row] = team.shared().of[1][0];
        });
    }
};

/// Of what Statistics has found of at most `threads` parts (Chan, Golub and LeVeque 1983): squares about the mean of
/// all are those about each part's mean and, of each of its values, that of the distance of the means.
struct JoinStatistics : RowStatistics {
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t row = block.x;
        const auto values = [this](int part) { return static_cast<float>(end(part, of.size()) - begin(part)); };
        team.each([&](int part, auto&) {
            team.shared().of[0][part] = part < parts ? partial[2 * part * rows + row] * values(part) : 0.0F;
        });
        this->add_up(team, 0);
        team.each([&](int part, auto&) {
            if (part >= parts) {
                team.shared().of[1][part] = 0;
                return;
            }
            const float away = partial[2 * part * rows + row] - team.shared().of[0][0] / static_cast<float>(of.size());
            team.shared().of[1][part] = partial[(2 * part + 1) * rows + row] + away * away * values(part);
        });
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            const float centre = team.shared().of[0][0] / static_cast<float>(of.size());
            if (thread == 0) finish(row, centre, team.shared().of[1][0]);
        });
    }
};

/// dst = (src - mean) / deviation * gamma + beta (+ add) (, then ReLU). gamma and beta are a row's, or a column's.
struct Normalize : RunWise {
    Rows of;
    Values src, add, weights, dst;
    const float* mean = nullptr;
    const float* variance = nullptr;
    float epsilon = 0;
    std::int64_t parameters = 1;
    bool by_column = false, relu = false;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const int at_once = of.by_eights() ? numbers_at_once(src, add, dst) : 1;
        each_run(team, block, at_once, [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            const std::int64_t row = of.row_of(i), first = by_column ? i % of.area : row;
            const float centre = mean[row], scale = 1 / std::sqrt(variance[row] + epsilon);
            Floats<n> made = src.load<n>(i);
            const Floats<n> more = add ? add.load<n>(i) : Floats<n>{};
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) {
                const std::int64_t p = by_column ? first + e : first;
                const float normal = (made.of[e] - centre) * scale;
                const float result = normal * weights.at(p) + weights.at(parameters + p) + more.of[e];
                made.of[e] = relu && result < 0 ? 0.0F : result;
            }
            dst.store(i, made);
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

    REHEARSE_BOTH float scale(std::int64_t row) const { return 1 / std::sqrt(variance[row] + epsilon); }
    /// Gradients from a place on: diff, but 0 where the ReLU gave nothing.
    template <int n>
    REHEARSE_BOTH Floats<n> gradients(std::int64_t at) const {
        Floats<n> made = diff.load<n>(at);
        if (!dst) return made;
        const Floats<n> out = dst.load<n>(at);
        REHEARSE_UNROLL
        for (int e = 0; e < n; ++e) made.of[e] = out.of[e] <= 0 ? 0.0F : made.of[e];
        return made;
    }
};

/// d x = gamma / deviation (g - d beta / N - normal d gamma / N), and g itself for a shortcut.
struct NormBackward : RunWise, NormGradient {
    const float* sums = nullptr;
    Values diff_src, diff_add;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const int at_once = of.by_eights() ? numbers_at_once(src, diff, dst, diff_src, diff_add) : 1;
        each_run(team, block, at_once, [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            const std::int64_t row = of.row_of(i);
            Floats<n> g = gradients<n>(i);
            if (diff_add) diff_add.store(i, g);
            if (!diff_src) return;
            const Floats<n> x = src.load<n>(i);
            const float centre = mean[row], by = scale(row), size = static_cast<float>(of.size());
            const float beta = sums[of.rows + row] / size, gamma = sums[row] / size, factor = weights.at(row) * by;
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) g.of[e] = factor * (g.of[e] - beta - (x.of[e] - centre) * by * gamma);
            diff_src.store(i, g);
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
            const float centre = mean[row], by = scale(row);
            float alone = 0, with_normal = 0;
            for (std::int64_t i = thread; i < of.area; i += threads) {
                const std::int64_t at = of.at(row, i);
                const float h = diff.at(at) * weights.at(i);
                alone += h;
                with_normal += h * ((src.at(at) - centre) * by);
            }
            team.shared().of[0][thread] = alone;
            team.shared().of[1][thread] = with_normal;
        });
        this->add_up(team, 0);
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            const float size = static_cast<float>(std::int64_t{of.area}), centre = mean[row], by = scale(row);
            const float mean_h = team.shared().of[0][0] / size, mean_hx = team.shared().of[1][0] / size;
            for (std::int64_t i = thread; i < of.area; i += threads) {
                const std::int64_t at = of.at(row, i);
                const float normal = (src.at(at) - centre) * by;
                diff_src.put(at, (diff.at(at) * weights.at(i) - mean_h - normal * mean_hx) * by);
            }
        });
    }
};

}  // namespace rehearse::kernels::cuda
