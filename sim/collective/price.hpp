// SPDX-License-Identifier: Apache-2.0
// What one collective takes by itself, of any kind.
#pragma once

#include <utility>

#include "core/machine.hpp"
#include "sim/collective/collectives.hpp"
#include "sim/collective/groups.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {

/// From when all ranks of the mesh enter it until the last has left it. Folded: by counting alone, as on large
/// machines; exact: every message a flow of SimGrid's; automatic: as exact while its messages are few. InputError as
/// simulate.
Seconds collective_time(const Call& call, const Mesh& mesh, const Machine& machine, Mode mode = Mode::automatic,
                        ZScore z_score = nominal);

/// The same for many collectives on one mesh, by counting alone: the machine's links are numbered once.
class CollectiveTimes {
public:
    CollectiveTimes(Mesh mesh, const Machine& machine)
        : mesh_(std::move(mesh)), wiring_(machine, nominal), collectives_(mesh_, wiring_, 0) {}
    CollectiveTimes(const CollectiveTimes&) = delete;
    CollectiveTimes& operator=(const CollectiveTimes&) = delete;

    /// InputError as simulate.
    Seconds time(const Call& call);

private:
    Mesh mesh_;
    Wiring wiring_;
    Collectives collectives_;
};

}  // namespace rehearse::sim
