// SPDX-License-Identifier: Apache-2.0
// Elements of a type that is known when a task runs: tasks that wait for memory need no instance for each type.
#pragma once

#include <cmath>

#include "kernels/cuda/division.hpp"
#include "kernels/cuda/words.hpp"

namespace rehearse::kernels::cuda {

/// Elements of one type; null: there are none.
struct Values {
    void* data = nullptr;
    DataType type = DataType::f32;

    REHEARSE_BOTH explicit operator bool() const { return data != nullptr; }
    REHEARSE_BOTH float at(std::int64_t i) const {
        if (type == DataType::f32) return static_cast<const float*>(data)[i];
        if (type == DataType::f16) return to_float(static_cast<const Float16*>(data)[i]);
        return to_float(static_cast<const BFloat16*>(data)[i]);
    }
    /// Elements i to i + n - 1; of several, i is a multiple of n, as numbers_at_once() allowed.
    template <int n>
    REHEARSE_BOTH Floats<n> load(std::int64_t i) const {
        if constexpr (n == 1) {
            return {at(i)};
        } else {
            if (type == DataType::f32) return load_floats<n>(static_cast<const float*>(data) + i);
            if (type == DataType::f16) return load_halves<Float16, n>(static_cast<const Float16*>(data) + i);
            return load_halves<BFloat16, n>(static_cast<const BFloat16*>(data) + i);
        }
    }
    template <int n>
    REHEARSE_BOTH void store(std::int64_t i, const Floats<n>& values) const {
        if constexpr (n == 1) {
            put(i, values.of[0]);
        } else if (type == DataType::f32) {
            store_floats(static_cast<float*>(data) + i, values);
        } else if (type == DataType::f16) {
            store_halves(static_cast<Float16*>(data) + i, values);
        } else {
            store_halves(static_cast<BFloat16*>(data) + i, values);
        }
    }
    REHEARSE_BOTH void put(std::int64_t i, float value) const {
        if (type == DataType::f32) {
            static_cast<float*>(data)[i] = value;
        } else if (type == DataType::f16) {
            static_cast<Float16*>(data)[i] = from_float<Float16>(value);
        } else {
            static_cast<BFloat16*>(data)[i] = from_float<BFloat16>(value);
        }
    }
};

/// How many elements of each one access takes: 8, or 4 where some are f32; 1 where some do not begin at whole 16 bytes.
template <typename... Others>
REHEARSE_BOTH int numbers_at_once(const Values& first, const Others&... others) {
    int here = first.type == DataType::f32 ? 4 : 8;
    if (reinterpret_cast<std::uintptr_t>(first.data) % 16 != 0) here = 1;
    if (!first) here = 8;
    if constexpr (sizeof...(others) > 0) {
        const int rest = numbers_at_once(others...);
        here = rest < here ? rest : here;
    }
    return here;
}

/// Rounded once each: the compiler makes no fused multiply-add of them, so that a GPU's bits are the host's.
REHEARSE_BOTH inline float product(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}
REHEARSE_BOTH inline float sum(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

/// One thread a point.
struct PointWise {
    static constexpr int threads = 256;
    struct Shared {};
    struct Registers {};
    std::int64_t count = 0;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(count, threads)}; }

protected:
    template <typename Team, typename F>
    REHEARSE_BOTH void each_point(Team& team, const Block& block, F f) const {
        team.alone([&](int thread, Registers&) {
            const std::int64_t i = block.x * threads + thread;
            if (i < count) f(i);
        });
    }
};

template <int n>
struct Run {
    static constexpr int count = n;
};

/// Eight points a thread, for what only waits for memory.
struct RunWise {
    static constexpr int threads = 256, of_block = 8 * threads;
    struct Shared {};
    struct Registers {};
    std::int64_t count = 0;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(count, of_block)}; }

protected:
    /// f(Run<n>{}, i) for points i to i + n - 1, n being `at_once`; one by one where less than n are left. Threads side
    /// by side have points side by side.
    template <typename Team, typename F>
    REHEARSE_BOTH void each_run(Team& team, const Block& block, int at_once, F f) const {
        const std::int64_t begin = block.x * of_block;
        const std::int64_t end = begin + of_block < count ? begin + of_block : count;
        team.alone([&](int thread, Registers&) {
            std::int64_t rest = begin;
            if (at_once == 8) rest = runs(Run<8>{}, thread, begin, end, f);
            if (at_once == 4) rest = runs(Run<4>{}, thread, begin, end, f);
            REHEARSE_ROLLED
            for (std::int64_t i = rest + thread; i < end; i += threads) f(Run<1>{}, i);
        });
    }

private:
    /// Whole runs of [begin, end); returns where they end.
    template <int n, typename F>
    static REHEARSE_BOTH std::int64_t runs(Run<n> run, int thread, std::int64_t begin, std::int64_t end, F f) {
        const std::int64_t last = end - (end - begin) % n;
        REHEARSE_UNROLL
        for (int turn = 0; turn < of_block / threads / n; ++turn) {
            const std::int64_t i = begin + (turn * threads + thread) * n;
            if (i < last) f(run, i);
        }
        return last;
    }
};

/// One block a row; threads add up what each of them has.
template <int sums>
struct RowWise {
    static constexpr int threads = 256;
    struct Shared {
        float of[sums][threads];
    };
    struct Registers {};
    std::int64_t rows = 0;

    REHEARSE_BOTH Blocks blocks() const { return {rows}; }

protected:
    /// of[s][0] becomes `f` of all of[s], pair by pair.
    template <typename Team, typename F>
    REHEARSE_BOTH static void combine(Team& team, int s, F f) {
        for (int half = threads / 2; half > 0; half /= 2) {
            team.each([&, half](int thread, auto&) {
                float* const of = team.shared().of[s];
                if (thread < half) of[thread] = f(of[thread], of[thread + half]);
            });
        }
    }
    template <typename Team>
    REHEARSE_BOTH static void add_up(Team& team, int s) {
        combine(team, s, [](float a, float b) { return a + b; });
    }
    struct Exponentials {
        float largest = 0, total = 0;
    };
    /// Of a row of scores: the largest, and the sum of exp(score - largest) of all but the class `without`. The shared
    /// values are free again.
    template <typename Team, typename Of>
    REHEARSE_BOTH static Exponentials exponentials(Team& team, const Of& scores, std::int64_t begin,
                                                   std::int64_t without = -1) {
        float* const shared = team.shared().of[0];
        Exponentials made;
        team.each([&](int thread, auto&) {
            shared[thread] = scores.src.at(begin);
            for (std::int64_t i = thread; i < scores.classes; i += threads) {
                const float score = scores.src.at(begin + i * scores.step);
                shared[thread] = shared[thread] > score ? shared[thread] : score;
            }
        });
        combine(team, 0, [](float a, float b) { return a > b ? a : b; });
        team.each([&](int, auto&) { made.largest = shared[0]; });
        team.each([&](int thread, auto&) {
            shared[thread] = 0;
            for (std::int64_t i = thread; i < scores.classes; i += threads) {
                if (i != without) shared[thread] += std::exp(scores.src.at(begin + i * scores.step) - made.largest);
            }
        });
        add_up(team, 0);
        team.each([&](int, auto&) { made.total = shared[0]; });
        return made;
    }
};

}  // namespace rehearse::kernels::cuda
