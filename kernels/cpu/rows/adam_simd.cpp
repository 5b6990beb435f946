// SPDX-License-Identifier: Apache-2.0
// The arithmetic of kernels/reference/adam.cpp by vectors; norms in stretches, their sum in double.
#include "kernels/cpu/rows/adam_simd.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/adam_simd.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                              // must come before highway.h
#include "hwy/highway.h"
#include "kernels/cpu/over_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

// Adam on vectors, and on single numbers at the end.
struct Moving {
    const AdamStep& s;
    Vector beta1, rest1, beta2, rest2, correct1, correct2, epsilon, decay;

    explicit HWY_INLINE Moving(const AdamStep& step)
        : s(step),
          beta1(hn::Set(f32, s.beta_first)),
          rest1(hn::Set(f32, 1 - s.beta_first)),
          beta2(hn::Set(f32, s.beta_second)),
          rest2(hn::Set(f32, 1 - s.beta_second)),
          correct1(hn::Set(f32, s.correct_first)),
          correct2(hn::Set(f32, s.correct_second)),
          epsilon(hn::Set(f32, s.epsilon)),
          decay(hn::Set(f32, s.decay)) {}

    HWY_INLINE void move(std::int64_t i) const {
        const Vector g = hn::LoadU(f32, s.gradient + i);
        const Vector m = hn::MulAdd(beta1, hn::LoadU(f32, s.first + i), hn::Mul(rest1, g));
        const Vector v = hn::MulAdd(beta2, hn::LoadU(f32, s.second + i), hn::Mul(hn::Mul(rest2, g), g));
        hn::StoreU(m, f32, s.first + i);
        hn::StoreU(v, f32, s.second + i);
    }
    HWY_INLINE Vector direction(std::int64_t i) const {
        const Vector divisor = hn::Add(hn::Sqrt(hn::Mul(correct2, hn::LoadU(f32, s.second + i))), epsilon);
        const Vector step = hn::Div(hn::Mul(correct1, hn::LoadU(f32, s.first + i)), divisor);
        return hn::MulAdd(decay, hn::LoadU(f32, s.weights + i), step);
    }
    void move_one(std::int64_t i) const {
        const float g = s.gradient[i];
        s.first[i] = s.beta_first * s.first[i] + (1 - s.beta_first) * g;
        s.second[i] = s.beta_second * s.second[i] + (1 - s.beta_second) * g * g;
    }
    float direction_of_one(std::int64_t i) const {
        return s.correct_first * s.first[i] / (std::sqrt(s.correct_second * s.second[i]) + s.epsilon) +
               s.decay * s.weights[i];
    }
};

void take_step(const AdamStep& step) {
    const Moving moving(step);
    const Vector rate = hn::Set(f32, step.rate);
    over(
        step.count,
        [&](std::int64_t i) HWY_ATTR {
            const Vector moved = hn::NegMulAdd(rate, moving.direction(i), hn::LoadU(f32, step.weights + i));
            hn::StoreU(moved, f32, step.weights + i);
        },
        [&](std::int64_t i) { step.weights[i] -= step.rate * moving.direction_of_one(i); });
}

void adam_step(const AdamStep& step) {
    const Moving moving(step);
    const Vector rate = hn::Set(f32, step.rate);
    over(
        step.count,
        [&](std::int64_t i) HWY_ATTR {
            moving.move(i);
            const Vector moved = hn::NegMulAdd(rate, moving.direction(i), hn::LoadU(f32, step.weights + i));
            hn::StoreU(moved, f32, step.weights + i);
        },
        [&](std::int64_t i) {
            moving.move_one(i);
            step.weights[i] -= step.rate * moving.direction_of_one(i);
        });
}

Norms moments(const AdamStep& step) {
    constexpr std::int64_t stretch = 4096;  // that is summed in f32
    const Moving moving(step);
    Norms norms;
    for (std::int64_t begin = 0; begin < step.count; begin += stretch) {
        const std::int64_t size = std::min(stretch, step.count - begin);
        Vector weights = hn::Zero(f32);
        Vector directions = hn::Zero(f32);
        over(
            size,
            [&](std::int64_t i) HWY_ATTR {
                moving.move(begin + i);
                const Vector w = hn::LoadU(f32, step.weights + begin + i);
                const Vector r = moving.direction(begin + i);
                weights = hn::MulAdd(w, w, weights);
                directions = hn::MulAdd(r, r, directions);
            },
            [&](std::int64_t i) {
                moving.move_one(begin + i);
                const double w = step.weights[begin + i];
                const double r = moving.direction_of_one(begin + i);
                norms.weights += w * w;
                norms.direction += r * r;
            });
        norms.weights += total(weights);
        norms.direction += total(directions);
    }
    return norms;
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(adam_step);
HWY_EXPORT(moments);
HWY_EXPORT(take_step);

void adam(const AdamStep& step) { HWY_DYNAMIC_DISPATCH(adam_step)(step); }
Norms lamb_moments(const AdamStep& step) { return HWY_DYNAMIC_DISPATCH(moments)(step); }
void lamb_step(const AdamStep& step) { HWY_DYNAMIC_DISPATCH(take_step)(step); }

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
