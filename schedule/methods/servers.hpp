// SPDX-License-Identifier: Apache-2.0
// Parameter servers (Li et al. 2014; Chilimbi et al. 2014): who keeps which bucket, and what is sent of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Returns the server of each bucket, of `count` servers. The largest bucket first, each to the server that has least
/// by then (as TensorFlow's greedy placement by size).
std::vector<int> servers_of(const std::vector<Bucket>& buckets, std::int64_t count);

/// Whether the K (M + N) inputs and errors of a dense layer of M x N weights are fewer than these, K samples a step
/// (Project Adam, section 3.2 of Chilimbi et al. 2014).
bool sends_vectors(const Op& op, std::int64_t samples);

/// Returns the layers where buckets have to begin, so that each dense layer that sends sufficient factors is alone in
/// its own.
std::vector<int> alone_in_buckets(const Network& network, std::int64_t samples);

/// Returns, by bucket, whether it sends sufficient factors; none does unless `wanted`.
std::vector<bool> with_vectors(bool wanted, const Part& part, std::int64_t samples);

}  // namespace rehearse::schedule
