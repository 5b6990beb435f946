// SPDX-License-Identifier: Apache-2.0
// Loss scaling of a program: when a step is skipped, and what the scale becomes.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/convert.hpp"
#include "run/program.hpp"

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

bool Program::has_overflowed() const {
    if (!applies()) return false;
    return !(device_ == nullptr ? is_finite(tensors_->applied()) : device_->all_finite(tensors_->applied()));
}

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
    const std::span<float> gradients = unscaled_.first(ready.scaled.size());
    if (device_ != nullptr) {
        device_->scale(ready.scaled, gradients, 1 / applied_scale());
    } else {
        kernels::convert(ready.scaled, gradients);
        for (float& value : gradients) value /= applied_scale();
    }
    ready.buffers.diff_weights = gradients;
}

ProgramState Program::state() const {
    std::int64_t updates = 0;
    for (const ReadyStep& ready : steps_) {
        if (std::holds_alternative<Update>(ready.step->action)) updates = ready.buffers.update_count;
    }
    return {scale_, good_steps_, updates, begun_, made_scale_};
}

void Program::set_state(const ProgramState& state) {
    if (scales()) {
        scale_ = state.loss_scale;
        made_scale_ = state.made_scale;
    }
    good_steps_ = static_cast<int>(state.good_steps);
    begun_ = state.begun;
    for (ReadyStep& ready : steps_) {
        const auto* update = std::get_if<Update>(&ready.step->action);
        if (update != nullptr) ready.buffers.update_count = updates_[update->bucket] = state.updates;
    }
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
