// SPDX-License-Identifier: Apache-2.0
// Loss scaling (Micikevicius et al. 2018): the loss's gradient is multiplied by a scale, the weights' divided by it
// before their update; a step in which any of them is not finite updates nothing.
#pragma once

#include <optional>

#include "core/schedule.hpp"
#include "kernels/device.hpp"
#include "kernels/view.hpp"

namespace rehearse::run {

class LossScale {
public:
    /// A scale of 1 that never changes, unless `on`. `initial` is doubled after `growth_interval` good steps.
    LossScale(bool on, float initial, int growth_interval)
        : on_(on), found_(on), scale_(initial), growth_interval_(growth_interval) {}

    bool on() const { return on_; }
    /// What this step's losses are multiplied by.
    float now() const { return on_ ? scale_ : 1; }
    /// What the gradients that this step updates by were multiplied by: now(), unless they are an earlier step's.
    float applied() const { return applied_.value_or(now()); }
    void set_applied(float scale) { applied_ = scale; }

    void skip_updates(bool skip) { skips_ = skip; }
    bool skips() const { return skips_; }
    /// Halves the scale after a skipped step; doubles it after `growth_interval` good ones.
    void adapt();

    /// What a checkpoint keeps: a scale and its good steps where steps have found it, in this run or in one before that
    /// it goes on from, and 1 and 0 elsewhere.
    bool found() const { return found_; }
    float kept() const { return found_ ? scale_ : 1; }
    int good_steps() const { return good_steps_; }
    /// Between two steps, from a checkpoint. Of a run that scaled nothing there is none: this one begins with its own.
    void restore(bool found, float scale, int good_steps);

private:
    bool on_, found_;
    float scale_;
    int growth_interval_, good_steps_ = 0;
    bool skips_ = false;
    std::optional<float> applied_;
};

/// Whether all gradients are finite: of the device's memory, or the host's where there is none.
bool all_finite(kernels::ConstView gradients, kernels::Device* device);

/// Whether ranks may find different gradients to be finite: where the whole sums of all gradients are on every rank,
/// all see the same.
bool overflows_apart(const Schedule& schedule, const RankClass& rank_class);

}  // namespace rehearse::run
