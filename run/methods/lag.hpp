// SPDX-License-Identifier: Apache-2.0
// Gradient lag (Kurth et al. 2018): a step sums the gradients that the step before it has made, and updates by these.
#pragma once

#include <cstdint>

#include "run/methods/method.hpp"

namespace rehearse::run {

/// Adds no steps: it hands the gradients on to the next training step, and with them the scale of their loss.
class LagMethod : public Method {
public:
    explicit LagMethod(RankContext& rank) : rank_(rank) {}
    bool prepare(ReadyStep& /*ready*/) override { return false; }
    void begin_step() override;
    /// The first step has no gradients to update by.
    bool updates() const override { return begun_ > 1; }
    /// The gradients that the last step has made, and how many steps have begun.
    void visit_state(const UseNumbers& use) override;
    void save(ProgramState& state) const override;
    void restore(const ProgramState& state) override;

private:
    RankContext& rank_;
    std::int64_t begun_ = 0;  // steps
    float made_scale_ = 1;    // of the gradients that the last step has made
};

}  // namespace rehearse::run
