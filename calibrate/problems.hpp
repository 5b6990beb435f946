// SPDX-License-Identifier: Apache-2.0
// Which problems must be measured so that a training step is priced from samples alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/network.hpp"
#include "core/op.hpp"
#include "core/schedule.hpp"

namespace rehearse::calibrate {

/// Of the compute and update steps of a schedule: each once, in the order of their first use.
std::vector<Problem> problems(const Schedule& schedule);

/// Of data-parallel training of `networks` at `batches` samples a rank, all gradients of a network in one bucket.
std::vector<Problem> problems(std::span<const Network> networks, std::span<const std::int64_t> batches,
                              DataType type = DataType::f32);

}  // namespace rehearse::calibrate
