// SPDX-License-Identifier: Apache-2.0
// How many threads a rank's kernels use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/comm/communicator.hpp"

namespace rehearse::run {

/// The cores that a rank may run on, one bit each, in words of 32 bits.
using CoreMask = std::vector<std::uint32_t>;

/// A fair share of the cores of `rank`: what it may use, divided among the ranks that may use some of the same cores.
std::int64_t fair_share(std::span<const CoreMask> masks, std::size_t rank);

/// Sets the number of OpenMP threads of the calling thread's kernels to the smallest fair share of all ranks, so that
/// all sum in the same order, and returns it. OMP_NUM_THREADS has precedence.
int choose_threads(const kernels::Communicator& world);

}  // namespace rehearse::run
