// SPDX-License-Identifier: Apache-2.0
// What one collective takes by itself, of any kind.
#pragma once

#include "core/machine.hpp"
#include "sim/groups.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {

/// From when all ranks of the mesh enter it until the last has left it. Folded: by counting alone, as on large
/// machines; exact: every message a flow of SimGrid's; automatic: as exact while its messages are few. InputError as
/// simulate.
Seconds collective_time(const Call& call, const Mesh& mesh, const Machine& machine, Mode mode = Mode::automatic,
                        Quantile quantile = nominal);

}  // namespace rehearse::sim
