// SPDX-License-Identifier: Apache-2.0
// A training step that a profiler recorded on every rank as what the ranks do, for other simulators.
#pragma once

#include <span>

#include "core/rank_program.hpp"
#include "core/recording.hpp"

namespace rehearse::trace {

/// The step of median length, of three or more without the first. A call takes what its kernels do and the idle time
/// before them, and comes after the one before it and after collectives that ended between the two; a collective begins
/// after the calls that had ended by then; the optimizer waits for all of them. InputError where a rank has no
/// recording or other collectives than the others, and for collectives whose size or group the recordings do not tell.
RankPrograms programs_of(std::span<const Recording> recordings);

}  // namespace rehearse::trace
