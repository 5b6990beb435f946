// SPDX-License-Identifier: Apache-2.0
// Attention in tiles: a block keeps the scores of some queries and some keys in shared memory and goes on to the next
// with the online softmax of Milakov and Gimelshein (2018), as FlashAttention does (Dao et al. 2022); backward computes
// them again, once for the queries' gradients and once for the keys' and values' (Dao 2023), so that nothing is added
// by two blocks. On ordinary cores, sums in f32.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

constexpr int largest_head = 128;

/// Rows of one part of every head: element c of row t begins at sample * sample_step + head * size + t * row_step.
struct Heads {
    Values values;
    std::int64_t sample_step = 0, row_step = 0;
    REHEARSE_BOTH explicit operator bool() const { return static_cast<bool>(values); }
    REHEARSE_BOTH std::int64_t at(const Block& block, std::int64_t row, std::int64_t size) const {
        return block.z * sample_step + block.y * size + row * row_step;
    }
};

/// What the tasks share. Blocks: a tile of queries or keys, a head, a sample.
struct Attending {
    Heads q, k, v;
    std::int64_t samples = 1, keys = 1;
    Divisor heads, queries, size;
    float scale = 1;
    bool causal = false;
    float* log_sums = nullptr;  // {sample, head, query}

    /// Keys that query i sees.
    REHEARSE_BOTH std::int64_t seen(std::int64_t i) const { return causal ? i + 1 + keys - queries : keys; }
    REHEARSE_BOTH bool sees(std::int64_t i, std::int64_t j) const { return i < queries && j < keys && j < seen(i); }
    REHEARSE_BOTH std::int64_t row_of(const Block& block, std::int64_t i) const {
        return (block.z * heads + block.y) * queries + i;
    }
};

/// `side` queries by `side` keys; eight threads a row, of which each takes every eighth number.
template <int side_>
struct HeadTile {
    static constexpr int side = side_, across = 8, threads = side * across, room = largest_head + 1;
    static constexpr int scores = side / across, parts = largest_head / across;  // of a thread
    using Rows = float[side][room];

    /// Rows from `first` on; 0 where there are none.
    static REHEARSE_BOTH void load(int thread, const Attending& a, const Block& block, const Heads& from,
                                   std::int64_t first, std::int64_t rows, Rows& to) {
        const int size = static_cast<int>(a.size);
        for (int n = thread; n < side * size; n += threads) {
            const int row = n / a.size, c = n - row * size;
            const bool there = first + row < rows;
            to[row][c] = there ? from.values.at(from.at(block, first + row, a.size) + c) : 0.0F;
        }
    }
    static REHEARSE_BOTH float dot(const float* a, const float* b, std::int64_t size) {
        float total = 0;
        for (int c = 0; c < size; ++c) total += a[c] * b[c];
        return total;
    }
};

/// dst = softmax(scale Q K^T) V, and the logarithm of each query's sum of exponentials.
struct AttendForward : Attending, HeadTile<32> {
    static constexpr int resident = 4;
    struct Shared {
        Rows q, kv;
        float p[side][side + 1], largest[side], total[side], shrunk[side];
    };
    struct Registers {
        float sums[parts];
    };
    Heads dst;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(queries, side), heads, samples}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t first = block.x * side;
        const std::int64_t last = first + side < queries ? first + side - 1 : queries - 1;
        team.each([&](int thread, Registers& r) {
            REHEARSE_UNROLL
            for (int n = 0; n < parts; ++n) r.sums[n] = 0;
            load(thread, *this, block, q, first, queries, team.shared().q);
            if (thread < side) team.shared().largest[thread] = -INFINITY, team.shared().total[thread] = 0;
        });
        for (std::int64_t key = 0; key < seen(last); key += side) {
            team.each([&](int thread, Registers&) { load(thread, *this, block, k, key, keys, team.shared().kv); });
            team.each([&](int thread, Registers&) { score(thread, first, key, team.shared()); });
            team.each([&](int thread, Registers&) {
                if (thread < side) exponentiate(thread, team.shared());
                load(thread, *this, block, v, key, keys, team.shared().kv);
            });
            team.each([&](int thread, Registers& r) { add(thread, team.shared(), r); });
        }
        team.alone([&](int thread, Registers& r) { store(thread, block, first, team.shared(), r); });
    }

private:
    REHEARSE_BOTH void score(int thread, std::int64_t first, std::int64_t key, Shared& s) const {
        const int i = thread / across;
        for (int n = 0; n < scores; ++n) {
            const int j = thread % across + n * across;
            s.p[i][j] = sees(first + i, key + j) ? scale * dot(s.q[i], s.kv[j], size) : -INFINITY;
        }
    }
    // What was summed before shrinks by how much the largest score has grown.
    REHEARSE_BOTH static void exponentiate(int i, Shared& s) {
        float largest = s.largest[i];
        for (int j = 0; j < side; ++j) largest = s.p[i][j] > largest ? s.p[i][j] : largest;
        s.shrunk[i] = largest > -INFINITY ? std::exp(s.largest[i] - largest) : 1.0F;
        s.total[i] *= s.shrunk[i];
        for (int j = 0; j < side; ++j) {
            s.p[i][j] = largest > -INFINITY ? std::exp(s.p[i][j] - largest) : 0.0F;
            s.total[i] += s.p[i][j];
        }
        s.largest[i] = largest;
    }
    REHEARSE_BOTH void add(int thread, const Shared& s, Registers& r) const {
        const int i = thread / across;
        REHEARSE_UNROLL
        for (int n = 0; n < parts; ++n) {
            const int c = thread % across + n * across;
            if (c >= size) continue;
            float total = r.sums[n] * s.shrunk[i];
            for (int j = 0; j < side; ++j) total += s.p[i][j] * s.kv[j][c];
            r.sums[n] = total;
        }
    }
    REHEARSE_BOTH void store(int thread, const Block& block, std::int64_t first, const Shared& s,
                             const Registers& r) const {
        const int i = thread / across;
        if (first + i >= queries) return;
        REHEARSE_UNROLL
        for (int n = 0; n < parts; ++n) {
            const int c = thread % across + n * across;
            if (c < size) dst.values.put(dst.at(block, first + i, size) + c, r.sums[n] / s.total[i]);
        }
        if (thread % across == 0) log_sums[row_of(block, first + i)] = s.largest[i] + std::log(s.total[i]);
    }
};

/// Of each query the sum of dst diff, which is that of its probabilities times their gradients.
struct AttendCommon : PointWise, Attending {
    Heads dst, diff;
    float* common = nullptr;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t row) {
            const std::int64_t head = row / queries, i = row - head * queries;
            const Block of{0, head % heads, head / heads};
            float total = 0;
            for (std::int64_t c = 0; c < size; ++c) {
                total += dst.values.at(dst.at(of, i, size) + c) * diff.values.at(diff.at(of, i, size) + c);
            }
            common[row] = total;
        });
    }
};

/// With P the probabilities and dP = dO V^T: dS = scale P (dP - common), dQ = dS K, dK = dS^T Q, dV = P^T dO. A block
/// sums what one tile of queries, or of keys, gets from all tiles of the others.
struct AttendBackward : Attending, HeadTile<16> {
    struct Shared {
        Rows q, k, v, diff;
        float p[side][side + 1], slope[side][side + 1];
    };
    struct Registers {
        float first[parts], second[parts];  // of dQ; or of dK and dV
    };
    Heads diff, diff_q, diff_k, diff_v;
    const float* common = nullptr;
    bool of_queries = false;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(own_rows(), side), heads, samples}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t own = block.x * side;
        team.each([&](int thread, Registers& r) {
            REHEARSE_UNROLL
            for (int n = 0; n < parts; ++n) r.first[n] = r.second[n] = 0;
            load_own(thread, block, own, team.shared());
        });
        const std::int64_t end = of_queries ? keys : std::int64_t{queries};
        for (std::int64_t other = 0; other < end; other += side) {
            const std::int64_t query = of_queries ? own : other, key = of_queries ? other : own;
            if (key >= seen(query + side - 1)) continue;  // no query of this tile sees any key of that
            team.each([&](int thread, Registers&) { load_other(thread, block, other, team.shared()); });
            team.each([&](int thread, Registers&) { slopes(thread, block, query, key, team.shared()); });
            team.each([&](int thread, Registers& r) { add(thread, team.shared(), r); });
        }
        team.alone([&](int thread, Registers& r) { store(thread, block, own, r); });
    }

private:
    REHEARSE_BOTH std::int64_t own_rows() const { return of_queries ? std::int64_t{queries} : keys; }
    REHEARSE_BOTH void load_queries(int thread, const Block& block, std::int64_t first, Shared& s) const {
        load(thread, *this, block, q, first, queries, s.q);
        load(thread, *this, block, diff, first, queries, s.diff);
    }
    REHEARSE_BOTH void load_keys(int thread, const Block& block, std::int64_t first, Shared& s) const {
        load(thread, *this, block, k, first, keys, s.k);
        load(thread, *this, block, v, first, keys, s.v);
    }
    REHEARSE_BOTH void load_own(int thread, const Block& block, std::int64_t first, Shared& s) const {
        if (of_queries) return load_queries(thread, block, first, s);
        load_keys(thread, block, first, s);
    }
    REHEARSE_BOTH void load_other(int thread, const Block& block, std::int64_t first, Shared& s) const {
        if (of_queries) return load_keys(thread, block, first, s);
        load_queries(thread, block, first, s);
    }
    REHEARSE_BOTH void slopes(int thread, const Block& block, std::int64_t query, std::int64_t key, Shared& s) const {
        const int i = thread / across;
        for (int n = 0; n < scores; ++n) {
            const int j = thread % across + n * across;
            s.p[i][j] = s.slope[i][j] = 0;
            if (!sees(query + i, key + j)) continue;
            const std::int64_t row = row_of(block, query + i);
            const float p = std::exp(scale * dot(s.q[i], s.k[j], size) - log_sums[row]);
            s.p[i][j] = p;
            s.slope[i][j] = scale * p * (dot(s.diff[i], s.v[j], size) - common[row]);
        }
    }
    REHEARSE_BOTH void add(int thread, const Shared& s, Registers& r) const {
        const int row = thread / across;
        REHEARSE_UNROLL
        for (int n = 0; n < parts; ++n) {
            const int c = thread % across + n * across;
            if (c >= size) continue;
            for (int other = 0; other < side; ++other) {
                if (of_queries) {
                    r.first[n] += s.slope[row][other] * s.k[other][c];
                } else {
                    r.first[n] += s.slope[other][row] * s.q[other][c];
                    r.second[n] += s.p[other][row] * s.diff[other][c];
                }
            }
        }
    }
    REHEARSE_BOTH void store(int thread, const Block& block, std::int64_t own, const Registers& r) const {
        const std::int64_t row = own + thread / across;
        if (row >= own_rows()) return;
        REHEARSE_UNROLL
        for (int n = 0; n < parts; ++n) {
            const int c = thread % across + n * across;
            if (c >= size) continue;
            const Heads& to = of_queries ? diff_q : diff_k;
            if (to) to.values.put(to.at(block, row, size) + c, r.first[n]);
            if (!of_queries && diff_v) diff_v.values.put(diff_v.at(block, row, size) + c, r.second[n]);
        }
    }
};

}  // namespace rehearse::kernels::cuda
