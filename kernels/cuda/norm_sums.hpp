// SPDX-License-Identifier: Apache-2.0
// Sums of gradients by rows and by columns (norms.hpp): of normalization's gamma and beta, of a bias.
#pragma once

#include "kernels/cuda/norms.hpp"

namespace rehearse::kernels::cuda {

/// Where one or two sums of each row or column go: `to` {kinds, columns} and, f32, `sums`; those of parts first to
/// `partial` {parts, kinds, columns}, of which JoinSums makes them.
struct SumsInParts : Parts {
    std::int64_t columns = 0;
    int kinds = 1;
    float* partial = nullptr;
    float* sums = nullptr;
    Values to;

    REHEARSE_BOTH void put(std::int64_t part, std::int64_t kind, std::int64_t column, float sum) const {
        if (parts == 1) return put_all(kind, column, sum);
        partial[(part * kinds + kind) * columns + column] = sum;
    }
    REHEARSE_BOTH void put_all(std::int64_t kind, std::int64_t column, float sum) const {
        if (sums != nullptr) sums[kind * columns + column] = sum;
        to.put(kind * columns + column, sum);
    }
};

/// A block has some columns; rows of its threads take every eighth part.
struct JoinSums : SumsInParts {
    static constexpr int across = 32, down = 8, threads = across * down;
    struct Shared {
        float of[down][across];
    };
    struct Registers {};
    REHEARSE_BOTH Blocks blocks() const { return {divide_up(columns, across), kinds}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t first = block.x * across;
        team.each([&](int thread, Registers&) {
            const std::int64_t column = first + thread % across;
            float total = 0;
            for (std::int64_t part = thread / across; column < columns && part < parts; part += down) {
                total += partial[(part * kinds + block.y) * columns + column];
            }
            team.shared().of[thread / across][thread % across] = total;
        });
        team.alone([&](int thread, Registers&) {
            if (thread >= across || first + thread >= columns) return;
            float total = 0;
            REHEARSE_UNROLL
            for (int i = 0; i < down; ++i) total += team.shared().of[i][thread];
            put_all(block.y, first + thread, total);
        });
    }
};

/// Of each row the sum of its gradients and, before it, that of gradients times normals: beta's and gamma's of batch
/// normalization. Without `mean` the former alone: a bias's.
struct GradientSums : RowWise<2>, NormGradient, SumsInParts {
    REHEARSE_BOTH Blocks blocks() const { return {rows, parts}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t row = block.x, last = end(block.y, of.size());
        const bool norm = mean != nullptr;
        const int at_once = !of.by_eights() ? 1 : norm ? numbers_at_once(src, diff, dst) : numbers_at_once(diff);
        team.each([&](int thread, auto&) {
            const float centre = norm ? mean[row] : 0.0F, by = norm ? scale(row) : 0.0F;
            float with_normal = 0, alone = 0;
            Parts::each(of, row, begin(block.y), last, thread, at_once, [&](auto run, std::int64_t at) {
                constexpr int n = decltype(run)::count;
                const Floats<n> g = gradients<n>(at), x = norm ? src.load<n>(at) : Floats<n>{};
                REHEARSE_UNROLL
                for (int e = 0; e < n; ++e) {
                    with_normal += g.of[e] * ((x.of[e] - centre) * by);
                    alone += g.of[e];
                }
            });
            team.shared().of[0][thread] = norm ? with_normal : alone;
            team.shared().of[1][thread] = alone;
        });
        this->add_up(team, 0);
        if (norm) this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            if (thread < kinds) put(block.y, thread, row, team.shared().of[thread][0]);
        });
    }
};

/// Sums of gradients down each column of {rows, area}, as GradientSums has them of rows: gamma's and beta's of layer
/// normalization, a product's bias. A block has columns of 32 threads side by side, eight a thread; its eight rows of
/// threads take every eighth row of the part.
struct ColumnSums : NormGradient, SumsInParts {
    static constexpr int across = 32, down = 8, threads = across * down, each_of = 8, wide = across * each_of;
    struct Shared {
        float of[2][down][wide];
    };
    struct Registers {};
    REHEARSE_BOTH Blocks blocks() const { return {divide_up(columns, wide), parts}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t first = block.x * wide;
        const int at_once = !of.by_eights() ? 1 : mean != nullptr ? numbers_at_once(src, diff) : numbers_at_once(diff);
        team.each([&](int thread, Registers&) {
            if (at_once == 8) return add(Run<8>{}, thread, first, block.y, team.shared());
            if (at_once == 4) return add(Run<4>{}, thread, first, block.y, team.shared());
            add(Run<1>{}, thread, first, block.y, team.shared());
        });
        team.alone([&](int thread, Registers&) {
            if (first + thread >= columns) return;
            for (int kind = 0; kind < kinds; ++kind) {
                float total = 0;
                REHEARSE_UNROLL
                for (int i = 0; i < down; ++i) total += team.shared().of[kind][i][thread];
                put(block.y, kind, first + thread, total);
            }
        });
    }

private:
    template <int n>
    REHEARSE_BOTH void add(Run<n>, int thread, std::int64_t first, std::int64_t part, Shared& shared) const {
        const int lane = thread % across, level = thread / across;
        float with_normal[each_of] = {}, alone[each_of] = {};
        for (std::int64_t row = begin(part) + level; row < end(part, of.rows); row += down) {
            const float centre = mean != nullptr ? mean[row] : 0.0F, by = mean != nullptr ? scale(row) : 0.0F;
            REHEARSE_UNROLL
            for (int e = 0; e < each_of; e += n) {
                const std::int64_t column = first + (e * across + lane * n);
                if (column >= columns) continue;
                const std::int64_t at = row * columns + column;
                const Floats<n> g = diff.load<n>(at), x = mean != nullptr ? src.load<n>(at) : Floats<n>{};
                REHEARSE_UNROLL
                for (int i = 0; i < n; ++i) {
                    with_normal[e + i] += g.of[i] * ((x.of[i] - centre) * by);
                    alone[e + i] += g.of[i];
                }
            }
        }
        REHEARSE_UNROLL
        for (int e = 0; e < each_of; ++e) {
            const int column = e / n * n * across + lane * n + e % n;
            shared.of[0][level][column] = mean != nullptr ? with_normal[e] : alone[e];
            shared.of[1][level][column] = alone[e];
        }
    }
};

}  // namespace rehearse::kernels::cuda
