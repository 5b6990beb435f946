// SPDX-License-Identifier: Apache-2.0
// The same collectives as the MPI library does them: what ours are compared with.
#pragma once

#include "core/collectives/collective.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::kernels {

/// Empty, or why MPI cannot: it has no sum of f16 and bf16.
std::string_view refusal_of_mpi(CollectiveKind kind, DataType type);

/// In place, one blocking call of MPI's; the collective's algorithm does not matter. The data is as Collective says but
/// for a reduce-scatter, whose result lies at the beginning. Elements are a multiple of the ranks where they are cut.
void run_by_mpi(Communicator& communicator, const Collective& collective, const Operand& operand);

/// Every rank sends `send` to the next one and receives as much from the one before.
void shift_by_mpi(Communicator& communicator, std::span<const std::byte> send, std::span<std::byte> receive);

}  // namespace rehearse::kernels
