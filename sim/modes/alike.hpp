// SPDX-License-Identifier: Apache-2.0
// Steps that compute the same: the micro-batches of a layer.
#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace rehearse::sim {

/// By step, one that has the same problem (problem_of), at or before it and with itself; -1 for what has none. Where a
/// layer's micro-batches differ in size, several may stand for one problem.
std::vector<int> first_alike(const std::vector<Step>& steps);

}  // namespace rehearse::sim
