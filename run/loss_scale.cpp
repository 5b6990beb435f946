// SPDX-License-Identifier: Apache-2.0
#include "run/loss_scale.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace rehearse::run {

namespace {

constexpr float largest_scale = 0x1p24F;  // beyond it a gradient of 1 / 256 overflows in f16

// An exponent of ones is infinity, or no number.
bool is_finite(kernels::ConstView gradients) {
    bool finite = true;  // without a way out, so that it is done by vectors
    if (gradients.type() == DataType::f32) {
        constexpr std::uint32_t exponent = 0x7F800000;
        for (const float gradient : gradients.as<float>()) {
            finite &= (std::bit_cast<std::uint32_t>(gradient) & exponent) != exponent;
        }
        return finite;
    }
    constexpr std::uint16_t exponent = 0x7C00;
    for (const Float16 gradient : gradients.as<Float16>()) finite &= (gradient.bits & exponent) != exponent;
    return finite;
}

}  // namespace

void LossScale::adapt() {
    if (skips_) {
        scale_ = std::max(1.0F, scale_ / 2);
        good_steps_ = 0;
    } else if (++good_steps_ == growth_interval_) {
        scale_ = std::min(largest_scale, 2 * scale_);
        good_steps_ = 0;
    }
    skips_ = false;
}

void LossScale::restore(bool found, float scale, int good_steps) {
    if (!found) return;
    found_ = true;
    scale_ = scale;
    good_steps_ = good_steps;
}

bool all_finite(kernels::ConstView gradients, kernels::Device* device) {
    return device == nullptr ? is_finite(gradients) : device->all_finite(gradients);
}

bool overflows_apart(const Schedule& schedule, const RankClass& rank_class) {
    for (const Axis& axis : schedule.mesh.axes) {
        if (axis.size > 1 && axis.name != "data") return true;
    }
    return std::ranges::any_of(rank_class.steps, [](const Step& step) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        return communicate != nullptr && communicate->kind == CollectiveKind::reduce_scatter;
    });
}

}  // namespace rehearse::run
