// SPDX-License-Identifier: Apache-2.0
// Experts shared out among ranks that have samples of their own (Lepikhin et al. 2021, section 3.2; M6 in Whale: Jia et
// al. 2022).
#pragma once

#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Each of `parts` ranks along mesh axis `axis` keeps as many of the experts of each GroupedMatMul, and computes them
/// for the tokens of all ranks; everything else it does for its own samples.
///
///     rank 0   dispatch ─► slots of all experts ─┐ exchange ┌─► experts 0 1, slots of both ─┐ exchange ┌─► combine
///     rank 1   dispatch ─► slots of all experts ─┘          └─► experts 2 3, slots of both ─┘          └─► combine
///
/// Backward the same exchanges, mirrored. Gradients of experts are whole where they are made; those of all other
/// weights are summed along the axis, too (Origin::summed). Elementwise operators between two layers of experts
/// (activations, the product of a gate) stay with these. InputError when the network has no GroupedMatMul, or one whose
/// experts the ranks cannot share evenly.
Part share_experts(const Network& network, const std::string& axis_name, int axis, std::int64_t parts);

/// InputError when a micro-batch of a rank class is no whole number of the groups whose tokens compete for experts.
void check_groups(const Schedule& schedule);

}  // namespace rehearse::schedule
