// SPDX-License-Identifier: Apache-2.0
// Where a predicted time comes from: what takes it, at which price, with which error, from which source.
#pragma once

#include <nlohmann/json.hpp>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse::cli {

/// Rows {what, steps, total_s, share, error, source}, the longest first; `share` is of the step, so that overlapped
/// communication makes the shares sum to more than one.
nlohmann::ordered_json explanation(const Schedule& schedule, const Machine& machine, const Timeline& timeline);

}  // namespace rehearse::cli
