// SPDX-License-Identifier: Apache-2.0
// Gradient buckets (Li et al. 2020, "PyTorch Distributed"): small gradients are sent together, early ones first.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Returns, for each layer of a part, the axis along which ranks have the same weights, each with a part of their
/// gradient: data's joined with those of Origin::summed, added to the mesh as needed; -1 where there is none, or where
/// the data axis itself cuts the weights; without data's where its ranks do not sum (`along_data`). InputError when
/// these axes do not stand next to each other.
std::vector<int> axes_of_sums(const Part& part, Mesh& mesh, bool along_data = true);

/// An axis of axes_of_sums (-1: none) with the copies of a stage, which have the places from `first` to `last` along
/// `pipe`. InputError where it does not stand right behind that.
int with_copies(int axis, int pipe, std::int64_t first, std::int64_t last, Mesh& mesh);

/// Of the ranks along an axis of axes_of_sums: those that share samples, each of which has a part of the gradient of
/// these, and those with samples of their own, as copies of a stage have; -1: there is one. Adds both axes to the mesh.
/// InputError as above.
struct BySamples {
    int shared = -1, own = -1;
};
BySamples by_samples(int axis, Mesh& mesh);

/// Returns buckets of the layers with weights, packed in the order in which the backward pass makes their gradients,
/// those of one axis together. A bucket closes as soon as it holds `limit` bytes (the first: the smaller of `first` and
/// `limit`), so it is at least that large, but the last. No bucket goes on beyond a layer of `begins`. A layer of
/// `ties` (with its Bucket::tie and tied) has one of its own. Where `pieces` says of each layer
/// whether ranks have pieces of it, no bucket has both pieces and whole layers.
std::vector<Bucket> make_buckets(const Network& network, DataType wire, Bytes first, Bytes limit,
                                 std::span<const int> axes, std::span<const int> begins = {},
                                 const std::map<int, std::pair<int, std::int64_t>>& ties = {},
                                 const std::vector<bool>& pieces = {});

}  // namespace rehearse::schedule
