// SPDX-License-Identifier: Apache-2.0
// Whether a collective left what it has to, on numbers whose sums are exact.
#pragma once

#include <functional>

#include "core/collectives/collective.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::bench {

/// What is checked: a collective, or only its first round (shift); by MPI a reduce-scatter leaves its result elsewhere.
struct TrafficCase {
    const Collective& collective;
    bool shift = false, by_mpi = false;
};

/// Collective: fills the operand with small whole numbers, runs it once, and counts wrong elements over all ranks.
std::int64_t count_wrong(const kernels::Communicator& communicator, const TrafficCase& which,
                         const kernels::Operand& operand, const std::function<void()>& run);

/// Element i of a buffer, rounded to its type.
void store(DataType type, std::byte* buffer, std::int64_t i, float number);
float load(DataType type, const std::byte* buffer, std::int64_t i);

}  // namespace rehearse::bench
