// SPDX-License-Identifier: Apache-2.0
// Attention of 16-bit tensors on tensor cores, tile by tile with the online softmax (Dao 2023, "FlashAttention-2").
// Backward computes the scores again, once for the queries' gradients and once for the keys' and values', so that
// nothing is added by two blocks.
#pragma once

#include "kernels/cuda/flash_tile.hpp"

namespace rehearse::kernels::cuda {

/// dst = softmax(scale Q K^T) V, and the logarithm of each query's sum of exponentials.
template <typename Element, int size_>
struct FlashForward : Attending {
    using Tile = FlashTile<Element, size_, size_ == 256 ? 32 : 64>;  // so that 255 registers hold it
    static constexpr int threads = Tile::threads, side = Tile::side;
    struct Shared {
        typename Tile::Rows q;
        typename Tile::OtherRows k, v;
    };
    struct Registers {
        typename Tile::Fragments16 factors;
        typename Tile::Scores scores;
        float sums[Tile::vectors][4];
        float largest[2], total[2], step[2];  // of rows g and g + 8
    };
    Heads dst;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(queries, side), heads, samples}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t first = block.x * side;
        const std::int64_t last = first + side < queries ? first + side - 1 : queries - 1;
        auto& s = team.shared();
        team.alone([&](int, Registers& r) {
            REHEARSE_UNROLL
            for (int j = 0; j < Tile::vectors; ++j) Tile::clear(r.sums[j]);
            REHEARSE_UNROLL
            for (int h = 0; h < 2; ++h) r.largest[h] = -INFINITY, r.total[h] = 0;
        });
        Tile::start(team, *this, block, q, first, queries, s.q);
        Tile::start(team, *this, block, k, 0, keys, s.k);
        team.commit();
        for (std::int64_t key = 0; key < seen(last); key += Tile::others) {
            team.template wait<0, false>();  // keys are there, and nobody reads values any more
            Tile::start(team, *this, block, v, key, keys, s.v);
            team.commit();
            team.alone([&](int, Registers& r) {
                REHEARSE_UNROLL
                for (int j = 0; j < Tile::blocks_of_scores; ++j) Tile::clear(r.scores[j]);
            });
            Tile::multiply(
                team, s.q, s.k, [](auto& r) -> auto& { return r.scores; });
            exponentiate(team, first, key);
            team.template wait<0, false>();  // values are there, and nobody reads keys any more
            if (key + Tile::others < seen(last)) Tile::start(team, *this, block, k, key + Tile::others, keys, s.k);
            team.commit();
            Tile::template add<size_>(
                team, [](auto& r) -> auto& { return r.scores; }, s.v, 0, [](auto& r) -> auto& { return r.sums; });
        }
        team.template wait<0, false>();
        finish(team, block, first);
        Tile::template store<size_>(
            team, *this, block, dst, first, queries, 0, s.q, [](auto& r) -> auto& { return r.sums; });
    }

private:
    // What was summed before shrinks by how much the largest score has grown.
    template <typename Team>
    REHEARSE_BOTH void exponentiate(Team& team, std::int64_t first, std::int64_t key) const {
        team.alone([&](int thread, Registers& r) {
            r.step[0] = r.step[1] = -INFINITY;
            Tile::each_score(thread, r.scores, [&](int row, int column, int half, float& score) {
                score = sees(first + row, key + column) ? scale * score : -INFINITY;
                float& most = r.step[half];
                most = score > most ? score : most;
            });
        });
        team.largest_of_quads([](auto& r) -> float(&)[2] { return r.step; });
        team.alone([&](int thread, Registers& r) {
            float shrunk[2], base[2];
            REHEARSE_UNROLL
            for (int h = 0; h < 2; ++h) {
                const float largest = r.step[h] > r.largest[h] ? r.step[h] : r.largest[h];
                base[h] = largest > -INFINITY ? largest : 0.0F;  // a row that has seen nothing yet
                shrunk[h] = exponential(r.largest[h] - base[h]);
                r.largest[h] = largest, r.total[h] *= shrunk[h], r.step[h] = 0;
            }
            Tile::each_score(thread, r.scores, [&](int, int, int half, float& score) {
                score = exponential(score - base[half]);
                r.step[half] += score;
            });
            REHEARSE_UNROLL
            for (int j = 0; j < Tile::vectors; ++j) {
                REHEARSE_UNROLL
                for (int e = 0; e < 4; ++e) r.sums[j][e] *= shrunk[e / 2];
            }
        });
        team.sum_of_quads([](auto& r) -> float(&)[2] { return r.step; });
        team.alone([&](int, Registers& r) {
            REHEARSE_UNROLL
            for (int h = 0; h < 2; ++h) r.total[h] += r.step[h];
        });
    }
    template <typename Team>
    REHEARSE_BOTH void finish(Team& team, const Block& block, std::int64_t first) const {
        team.alone([&](int thread, Registers& r) {
            REHEARSE_UNROLL
            for (int j = 0; j < Tile::vectors; ++j) {
                REHEARSE_UNROLL
                for (int e = 0; e < 4; ++e) r.sums[j][e] /= r.total[e / 2];
            }
            REHEARSE_UNROLL
            for (int h = 0; h < 2; ++h) {
                const std::int64_t row = first + Tile::row_of_warp(thread) + thread % 32 / 4 + 8 * h;
                if (thread % 4 == 0 && row < queries)
                    log_sums[row_of(block, row)] = r.largest[h] + std::log(r.total[h]);
            }
        });
    }
};

/// With P the probabilities and dP = dO V^T: dS = scale P (dP - common), dQ = dS K, dK = dS^T Q, dV = P^T dO. A block
/// has a tile of queries, or of keys whose scores lie the other way, and sums over all tiles of the others; of heads of
/// more than 128 numbers, of keys, `columns` of the gradients.
template <typename Element, int size_, bool of_queries>
struct FlashBackward : Attending {
    using Tile = FlashTile<Element, size_>;
    static constexpr int threads = Tile::threads, side = Tile::side;
    static constexpr int columns = of_queries || size_ < 128 ? size_ : 128, parts = size_ / columns;
    static constexpr bool of_queries_only = of_queries;
    struct Shared {
        typename Tile::Rows own_first, own_second, other_first, other_second;  // Q and dO, or K and V
        float log_sums[side], common[side];                                    // of the tile's queries
    };
    struct Registers {
        typename Tile::Fragments16 factors;
        typename Tile::Scores scores, slopes;
        float first[columns / 8][4], second[of_queries ? 1 : columns / 8][4];
    };
    Heads diff, diff_q, diff_k, diff_v;
    const float* common = nullptr;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(own_rows(), side) * parts, heads, samples}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t own = block.x / parts * side;
        const int first_column = static_cast<int>(block.x % parts) * columns;
        auto& s = team.shared();
        team.alone([&](int, Registers& r) {
            REHEARSE_UNROLL
            for (int j = 0; j < columns / 8; ++j) {
                Tile::clear(r.first[j]);
                if constexpr (!of_queries) Tile::clear(r.second[j]);
            }
        });
        Tile::start(team, *this, block, of_queries ? q : k, own, own_rows(), s.own_first);
        Tile::start(team, *this, block, of_queries ? diff : v, own, own_rows(), s.own_second);
        if (of_queries) load_queries(team, block, own);
        const std::int64_t end = of_queries ? keys : std::int64_t{queries};
        for (std::int64_t other = 0; other < end; other += side) {
            const std::int64_t query = of_queries ? own : other, key = of_queries ? other : own;
            if (key >= seen(query + side - 1)) continue;  // no query of this tile sees any key of that
            Tile::start(team, *this, block, of_queries ? k : q, other, end, s.other_first);
            Tile::start(team, *this, block, of_queries ? v : diff, other, end, s.other_second);
            if (!of_queries) load_queries(team, block, other);
            team.commit();
            team.template wait<0, false>();
            slopes(team, query, key);
            Tile::template add<columns>(
                team, [](auto& r) -> auto& { return r.slopes; }, s.other_first, first_column,
                [](auto& r) -> auto& { return r.first; });
            if constexpr (!of_queries) {
                Tile::template add<columns>(
                    team, [](auto& r) -> auto& { return r.scores; }, s.other_second, first_column,
                    [](auto& r) -> auto& { return r.second; });
            }
            team.each([](int, Registers&) {});  // nobody reads the others' tile any more
        }
        team.commit();
        team.template wait<0, false>();
        const Heads& to = of_queries ? diff_q : diff_k;
        if (to) {
            Tile::template store<columns>(
                team, *this, block, to, own, own_rows(), first_column, s.own_first,
                [](auto& r) -> auto& { return r.first; });
        }
        if constexpr (!of_queries) {
            if (!diff_v) return;
            Tile::template store<columns>(
                team, *this, block, diff_v, own, own_rows(), first_column, s.own_second,
                [](auto& r) -> auto& { return r.second; });
        }
    }

private:
    REHEARSE_BOTH std::int64_t own_rows() const { return of_queries ? std::int64_t{queries} : keys; }
    template <typename Team>
    REHEARSE_BOTH void load_queries(Team& team, const Block& block, std::int64_t first) const {
        team.alone([&](int thread, Registers&) {
            if (thread >= side) return;
            const bool there = first + thread < queries;
            team.shared().log_sums[thread] = there ? log_sums[row_of(block, first + thread)] : 0.0F;
            team.shared().common[thread] = there ? common[row_of(block, first + thread)] : 0.0F;
        });
    }
    // Both products, and of them probabilities and their gradients.
    template <typename Team>
    REHEARSE_BOTH void slopes(Team& team, std::int64_t query, std::int64_t key) const {
        auto& s = team.shared();
        team.alone([&](int, Registers& r) {
            REHEARSE_UNROLL
            for (int j = 0; j < Tile::blocks_of_scores; ++j) Tile::clear(r.scores[j]), Tile::clear(r.slopes[j]);
        });
        Tile::multiply(
            team, s.own_first, s.other_first, [](auto& r) -> auto& { return r.scores; });
        Tile::multiply(
            team, s.own_second, s.other_second, [](auto& r) -> auto& { return r.slopes; });
        team.alone([&](int thread, Registers& r) {
            Tile::each_score(thread, r.scores, [&](int row, int column, int, float& score) {
                const int i = of_queries ? row : column, j = of_queries ? column : row;
                score = sees(query + i, key + j) ? exponential(scale * score - s.log_sums[i]) : 0.0F;
            });
            REHEARSE_UNROLL
            for (int n = 0; n < Tile::blocks_of_scores; ++n) {
                REHEARSE_UNROLL
                for (int e = 0; e < 4; ++e) {
                    const int row = Tile::row_of_warp(thread) + thread % 32 / 4 + e / 2 * 8;
                    const int column = 8 * n + thread % 4 * 2 + e % 2;
                    r.slopes[n][e] = scale * r.scores[n][e] * (r.slopes[n][e] - s.common[of_queries ? row : column]);
                }
            }
        });
    }
};

}  // namespace rehearse::kernels::cuda
