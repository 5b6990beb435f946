// SPDX-License-Identifier: Apache-2.0
// Loss scaling of a program: when a step is skipped, and what the scale becomes.
#include <algorithm>
#include <cmath>

#include "kernels/convert.hpp"
#include "run/program.hpp"

namespace rehearse::run {

namespace {

constexpr float largest_scale = 0x1p24F;  // beyond it a gradient of 1 / 256 overflows in f16

bool is_finite(kernels::ConstView values) {
    const auto all = [](auto elements) {
        return std::ranges::all_of(elements, [](auto value) { return std::isfinite(static_cast<float>(value)); });
    };
    if (values.type() == DataType::f16) return all(values.as<Float16>());
    return values.type() == DataType::bf16 ? all(values.as<BFloat16>()) : all(values.as<float>());
}

}  // namespace

bool Program::has_overflowed() const { return !is_finite(tensors_->gradients()); }

// Where the whole sums of all gradients are on every rank, all see the same.
bool Program::may_differ() const {
    for (const Axis& axis : schedule_.mesh.axes) {
        if (axis.size > 1 && axis.name != "data") return true;
    }
    return std::ranges::any_of(rank_class_.steps, [](const Step& step) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        return communicate != nullptr && communicate->kind == CollectiveKind::reduce_scatter;
    });
}

// The update reads f32: divided in f16, what the scale had saved would vanish again.
void Program::unscale(ReadyStep& ready) {
    unscaled_.resize(std::max(unscaled_.size(), ready.scaled.size()));
    const std::span<float> gradients = std::span{unscaled_}.first(ready.scaled.size());
    kernels::convert(ready.scaled, gradients);
    for (float& value : gradients) value /= scale_;
    ready.buffers.diff_weights = gradients;
}

void Program::adapt_scale() {
    if (skips_) {
        scale_ = std::max(1.0F, scale_ / 2);
        good_steps_ = 0;
    } else if (++good_steps_ == hyperparameters_.growth_interval) {
        scale_ = std::min(largest_scale, 2 * scale_);
        good_steps_ = 0;
    }
    skips_ = false;
}

}  // namespace rehearse::run
