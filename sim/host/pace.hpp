// SPDX-License-Identifier: Apache-2.0
// Ranks that are slower than their prices say, by chance in each training step anew or because their node is; and
// links.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/machine.hpp"

namespace rehearse::sim {

/// Kernels on the devices of this node take `times` as long.
struct SlowNode {
    std::int64_t node = 0;
    double times = 1;
};

/// In each training step, a rank's kernels take exp(sigma z - sigma^2 / 2) times their price, z standard normal and
/// drawn for each rank: 1 on average. (Log-normal jitter of nodes, as in the model of Cori's runs; the ranks of a job
/// that wait for each other go at the pace of the slowest.)
struct Noise {
    double sigma = 0;
    std::uint64_t seed = 1;
};

/// A link has this share of its bandwidth left. `link` is a name as LinkUse has it; * stands for any text in it.
struct Degraded {
    std::string link;
    double share = 1;
};

/// By rank, of the `sample`-th step; all 1 where nothing is noisy or slow. InputError when a node is not the machine's
/// or a factor is not above 0.
std::vector<double> paces(std::int64_t ranks, const Machine& machine, std::span<const SlowNode> slow,
                          const Noise& noise = {}, int sample = 0);

/// The k-th smallest, k counted from 1: the pace of a step that waits for k of them.
double pace_of(std::vector<double> paces, std::int64_t k);

}  // namespace rehearse::sim
