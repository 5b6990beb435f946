// SPDX-License-Identifier: Apache-2.0
// Point by point: sums, copies, activations, dropout, rows of tables, an optimizer's step.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// dst = sum of the first `inputs` of src.
struct AddTensors : RunWise {
    Values src[4], dst;
    std::int32_t inputs = 0;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const int at_once = numbers_at_once(src[0], src[1], src[2], src[3], dst);  // those beyond `inputs` are null
        each_run(team, block, at_once, [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            Floats<n> total = src[0].load<n>(i);
            REHEARSE_UNROLL
            for (int s = 1; s < 4; ++s) {
                if (s >= inputs) break;
                const Floats<n> more = src[s].load<n>(i);
                REHEARSE_UNROLL
                for (int e = 0; e < n; ++e) total.of[e] += more.of[e];
            }
            dst.store(i, total);
        });
    }
};

/// dst[i] = src[i] + bias[i / inner % channels].
struct AddBias : RunWise {
    Values src, bias, dst;
    Divisor inner, channels;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        // Eight numbers of one channel, or of eight.
        const bool of_one = inner % std::int64_t{8} == 0, of_eight = inner == 1 && channels % std::int64_t{8} == 0;
        const int at_once = of_one || of_eight ? numbers_at_once(src, dst) : 1;
        each_run(team, block, at_once, [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            const std::int64_t channel = i / inner % channels;
            Floats<n> values = src.load<n>(i);
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) values.of[e] += bias.at(of_one ? channel : channel + e);
            dst.store(i, values);
        });
    }
};

/// Runs of `length` elements, of one type or another, that begin every `from_stride` and every `to_stride` elements,
/// times a factor.
struct CopyRuns : RunWise {
    Values from, to;
    float factor = 1;
    Divisor length;
    std::int64_t from_stride = 0, to_stride = 0;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const bool whole = length == count || (length | from_stride | to_stride) % 8 == 0;
        each_run(team, block, whole ? numbers_at_once(from, to) : 1, [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            const std::int64_t part = i / length, at = i - part * length;
            Floats<n> values = from.load<n>(part * from_stride + at);
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) values.of[e] *= factor;
            to.store(part * to_stride + at, values);
        });
    }
};

/// Samples of `outer` elements: `before` zeros, `inner` elements of src, zeros.
struct PadChannels : PointWise {
    Values src, dst;
    std::int64_t before = 0, inner = 1;
    Divisor outer;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t sample = i / outer, at = i - sample * outer - before;
            dst.put(i, at >= 0 && at < inner ? src.at(sample * inner + at) : 0.0F);
        });
    }
};

REHEARSE_BOTH inline float activated(Nonlinearity kind, float x) {
    constexpr float root_half = 0.70710678F;
    if (kind == Nonlinearity::relu) return x > 0 ? x : 0.0F;
    if (kind == Nonlinearity::sigmoid) return 1 / (1 + std::exp(-x));
    if (kind == Nonlinearity::tanh) return std::tanh(x);
    return x * 0.5F * std::erfc(-x * root_half);
}

REHEARSE_BOTH inline float slope_of(Nonlinearity kind, float x) {
    constexpr float root_half = 0.70710678F, density_at_0 = 0.39894228F;
    if (kind == Nonlinearity::relu) return x > 0 ? 1.0F : 0.0F;
    if (kind == Nonlinearity::sigmoid) return 1 / ((1 + std::exp(-x)) * (1 + std::exp(x)));
    if (kind == Nonlinearity::tanh) return 1 - std::tanh(x) * std::tanh(x);
    return 0.5F * std::erfc(-x * root_half) + x * density_at_0 * std::exp(-x * x / 2);
}

/// forward: dst = f(src). With a `diff`: dst = diff times the slope at src.
struct Activate : RunWise {
    Values src, diff, dst;
    Nonlinearity kind = Nonlinearity::relu;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_run(team, block, numbers_at_once(src, diff, dst), [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            Floats<n> made = src.load<n>(i);
            const Floats<n> by = diff ? diff.load<n>(i) : Floats<n>{};
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) {
                made.of[e] = diff ? by.of[e] * slope_of(kind, made.of[e]) : activated(kind, made.of[e]);
            }
            dst.store(i, made);
        });
    }
};

/// The n-th number of SplitMix64 (Steele, Lea and Flood 2014), as the reference draws it.
REHEARSE_BOTH inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t n) {
    std::uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

/// forward draws the factor of each value; with a `diff`: dst = diff times the factor.
struct DropOut : PointWise {
    Values src, diff, dst;
    float* factors = nullptr;
    std::uint64_t seed = 0, kept_below = 0;
    float factor = 1;
    Divisor sample;                        // elements of a sample
    std::int64_t whole = 1, first = 0;     // elements of a whole one; number of the first one
    const std::int64_t* places = nullptr;  // of a sample's elements in the whole one; none: as they lie
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            if (diff) return dst.put(i, diff.at(i) * factors[i]);
            const std::int64_t n = i / sample;
            const std::int64_t own = i - n * sample, place = places == nullptr ? own : places[own];
            const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(first + n * whole + place));
            factors[i] = bits >> 11 < kept_below ? factor : 0.0F;
            dst.put(i, src.at(i) * factors[i]);
        });
    }
};

REHEARSE_BOTH inline void add_to(float* to, float value) {
#ifdef __CUDA_ARCH__
    atomicAdd(to, value);
#else
    *to += value;
#endif
}

/// forward: dst[token] = rows of the tables. With a `diff`, adds it to these rows of `sums`, in any order.
struct PickRows : PointWise {
    Values weights, diff, dst;
    float* sums = nullptr;
    const std::int32_t* ids = nullptr;
    Divisor width, tokens;
    std::int64_t vocabulary = 1, positions = 0, segments = 0, first_row = 0;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t token = i / width, column = i - token * width, place = token % tokens;
            const std::int64_t id = ids[token] - first_row;
            const bool word_alone = !diff && first_row > 0;
            float total = 0;
            const auto row = [&](std::int64_t at) {
                if (diff) add_to(&sums[at * width + column], diff.at(i));
                if (!diff) total += weights.at(at * width + column);
            };
            if (id >= 0 && id < vocabulary) row(id);
            if (positions > 0 && !word_alone) row(vocabulary + place);
            if (segments > 0 && !word_alone) row(vocabulary + positions + place * segments / tokens);
            if (!diff) dst.put(i, total);
        });
    }
};

struct Zero : RunWise {
    Values to;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_run(team, block, numbers_at_once(to),
                 [&](auto run, std::int64_t i) { to.store(i, Floats<decltype(run)::count>{}); });
    }
};

/// SGD with momentum in exactly the order of kernels/reference/sgd.cpp.
struct SgdStep : RunWise {
    Values weights, diff, momentum, copy;
    float rate = 0, factor = 0, decay = 0;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_run(team, block, numbers_at_once(weights, diff, momentum, copy), [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            Floats<n> w = weights.load<n>(i), moved = momentum.load<n>(i);
            const Floats<n> gradients = diff.load<n>(i);
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) {
                const float gradient = sum(gradients.of[e], product(decay, w.of[e]));
                moved.of[e] = sum(product(factor, moved.of[e]), gradient);
                w.of[e] = sum(w.of[e], -product(rate, moved.of[e]));
            }
            momentum.store(i, moved);
            weights.store(i, w);
            if (copy) copy.store(i, w);
        });
    }
};

/// Adam in the order of kernels/reference/adam.cpp; `first`, `second` correct the moments.
struct AdamStep : RunWise {
    Values weights, diff, momentum, second_moment, copy;
    float rate = 0, factor = 0, second_factor = 0, decay = 0, epsilon = 0, first = 1, second = 1;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const int at_once = numbers_at_once(weights, diff, momentum, second_moment, copy);
        each_run(team, block, at_once, [&](auto run, std::int64_t i) {
            constexpr int n = decltype(run)::count;
            Floats<n> w = weights.load<n>(i), m = momentum.load<n>(i), v = second_moment.load<n>(i);
            const Floats<n> gradients = diff.load<n>(i);
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) {
                const float gradient = gradients.of[e];
                m.of[e] = sum(product(factor, m.of[e]), product(1 - factor, gradient));
                v.of[e] = sum(product(second_factor, v.of[e]), product(product(1 - second_factor, gradient), gradient));
                const float divisor = sum(std::sqrt(product(second, v.of[e])), epsilon);
                const float direction = sum(product(first, m.of[e]) / divisor, product(decay, w.of[e]));
                w.of[e] = sum(w.of[e], -product(rate, direction));
            }
            momentum.store(i, m);
            second_moment.store(i, v);
            weights.store(i, w);
            if (copy) copy.store(i, w);
        });
    }
};

}  // namespace rehearse::kernels::cuda
