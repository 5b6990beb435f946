// SPDX-License-Identifier: Apache-2.0
// Point by point: sums, copies, activations, dropout, rows of tables, an optimizer's step.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// dst = sum of the first `inputs` of src.
struct AddTensors : PointWise {
    Values src[4], dst;
    std::int32_t inputs = 0;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            float total = src[0].at(i);
            for (int s = 1; s < inputs; ++s) total += src[s].at(i);
            dst.put(i, total);
        });
    }
};

/// dst[i] = src[i] + bias[i / inner % channels].
struct AddBias : PointWise {
    Values src, bias, dst;
    std::int64_t inner = 1, channels = 1;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) { dst.put(i, src.at(i) + bias.at(i / inner % channels)); });
    }
};

/// Runs of `length` elements, of one type or another, that begin every `from_stride` and every `to_stride` elements,
/// times a factor.
struct CopyRuns : PointWise {
    Values from, to;
    float factor = 1;
    std::int64_t length = 1, from_stride = 0, to_stride = 0;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t run = i / length, at = i - run * length;
            to.put(run * to_stride + at, factor * from.at(run * from_stride + at));
        });
    }
};

/// Samples of `outer` elements: `before` zeros, `inner` elements of src, zeros.
struct PadChannels : PointWise {
    Values src, dst;
    std::int64_t before = 0, inner = 1, outer = 1;
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
struct Activate : PointWise {
    Values src, diff, dst;
    Nonlinearity kind = Nonlinearity::relu;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            dst.put(i, diff ? diff.at(i) * slope_of(kind, src.at(i)) : activated(kind, src.at(i)));
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
    std::int64_t sample = 1, whole = 1, first = 0;  // elements of a sample, of a whole one; number of the first one
    const std::int64_t* places = nullptr;           // of a sample's elements in the whole one; none: as they lie
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
    std::int64_t width = 1, tokens = 1, vocabulary = 1, positions = 0, segments = 0, first_row = 0;
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

struct Zero : PointWise {
    Values to;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) { to.put(i, 0.0F); });
    }
};

/// SGD with momentum in exactly the order of kernels/reference/sgd.cpp.
struct SgdStep : PointWise {
    Values weights, diff, momentum, copy;
    float rate = 0, factor = 0, decay = 0;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const float weight = weights.at(i);
            const float gradient = sum(diff.at(i), product(decay, weight));
            const float moved = sum(product(factor, momentum.at(i)), gradient);
            momentum.put(i, moved);
            const float made = sum(weight, -product(rate, moved));
            weights.put(i, made);
            if (copy) copy.put(i, made);
        });
    }
};

/// Adam in the order of kernels/reference/adam.cpp; `first`, `second` correct the moments.
struct AdamStep : PointWise {
    Values weights, diff, momentum, second_moment, copy;
    float rate = 0, factor = 0, second_factor = 0, decay = 0, epsilon = 0, first = 1, second = 1;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const float gradient = diff.at(i), weight = weights.at(i);
            const float m = sum(product(factor, momentum.at(i)), product(1 - factor, gradient));
            const float v = sum(product(second_factor, second_moment.at(i)),
                                product(product(1 - second_factor, gradient), gradient));
            momentum.put(i, m);
            second_moment.put(i, v);
            const float divisor = sum(std::sqrt(product(second, v)), epsilon);
            const float direction = sum(product(first, m) / divisor, product(decay, weight));
            const float made = sum(weight, -product(rate, direction));
            weights.put(i, made);
            if (copy) copy.put(i, made);
        });
    }
};

}  // namespace rehearse::kernels::cuda
