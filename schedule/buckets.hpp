// SPDX-License-Identifier: Apache-2.0
// Gradient buckets (Li et al. 2020, "PyTorch Distributed"): small gradients are sent together, early ones first.
#pragma once

#include <vector>

#include "core/schedule.hpp"
#include "core/units.hpp"

namespace rehearse::schedule {

/// Layers with weights, packed in the order in which the backward pass makes their gradients. A bucket closes as soon
/// as it holds `limit` bytes (the first: the smaller of `first` and `limit`), so it is at least that large, but the
/// last.
std::vector<Bucket> make_buckets(const Network& network, DataType wire, Bytes first, Bytes limit);

/// As Horovod packs (Sergeev and Del Balso 2018): a thread wakes every `cycle` and sends together what has become ready
/// since, at most `limit` bytes in a bucket unless one layer has more. `backward` is how long the backward pass of
/// each layer takes.
std::vector<Bucket> make_cycled_buckets(const Network& network, DataType wire, Bytes limit, Seconds cycle,
                                        const std::vector<double>& backward);

}  // namespace rehearse::schedule
