// SPDX-License-Identifier: Apache-2.0
// Data parallelism with gradient buckets (Li et al. 2020, "PyTorch Distributed"): every rank runs the whole network on
// its share of the batch; gradients are summed bucket by bucket while the backward pass goes on.
#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Layers with weights, packed in the order in which the backward pass makes their gradients. A bucket closes as soon
/// as it holds `limit` bytes (the first: the smaller of `first` and `limit`), so it is at least that large, but the
/// last.
std::vector<Bucket> make_buckets(const Network& network, DataType wire, Bytes first, Bytes limit);

struct GradientSum {
    int axis = 0;  // of the mesh
    Algorithm algorithm;
    bool overlap = true;
};

/// The one program of all ranks. Needs network, precision, mesh, batch_per_rank and buckets of `schedule`.
///
///   compute        forward 0..n | backward n ............. 0 | update 0, update 1
///   communication                     [bucket 0]   [bucket 1]^
///   ... overlap=off                                           [bucket 0] [bucket 1]
std::vector<Step> data_parallel_steps(const Schedule& schedule, const GradientSum& sum);

}  // namespace rehearse::schedule
