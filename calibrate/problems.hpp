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

/// A problem, and how many bytes a training step touches between two visits to the same buffer: whether the problem
/// finds them in a cache.
struct Needed {
    Problem problem;
    Bytes footprint;
};

/// What a step of `network` touches on one rank: outputs and their gradients, weights, their gradients and momentum.
Bytes footprint(const Network& network, std::int64_t batch, DataType type = DataType::f32);

/// Of the compute and update steps of all schedules: each problem once, in the order of its first use. Where several
/// have it, the largest footprint counts.
std::vector<Needed> problems(std::span<const Schedule> schedules);

/// Of data-parallel training of `networks` at `batches` samples a rank, all gradients of a network in one bucket.
std::vector<Needed> problems(std::span<const Network> networks, std::span<const std::int64_t> batches,
                             DataType type = DataType::f32);

}  // namespace rehearse::calibrate
