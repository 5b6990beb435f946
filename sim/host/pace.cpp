// SPDX-License-Identifier: Apache-2.0
#include "sim/host/pace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.hpp"

namespace rehearse::sim {

std::vector<double> paces(std::int64_t ranks, const Machine& machine, std::span<const SlowNode> slow,
                          const Noise& noise, int sample) {
    if (!(noise.sigma >= 0 && noise.sigma <= 1)) {
        throw InputError(
            fmt::format("noise {}: a relative standard deviation from 0 to 1, as 0.05 or 5%", noise.sigma));
    }
    std::vector<double> paces(static_cast<std::size_t>(ranks), 1);
    if (noise.sigma > 0) {
        std::seed_seq seeds{noise.seed, noise.seed >> 32U, static_cast<std::uint64_t>(sample)};
        std::mt19937_64 dice{seeds};
        std::normal_distribution<double> normal;
        const double shift = noise.sigma * noise.sigma / 2;
        for (double& pace : paces) pace = std::exp(noise.sigma * normal(dice) - shift);
    }
    for (const SlowNode& one : slow) {
        if (one.node < 0 || one.node >= node_count(machine)) {
            throw InputError(fmt::format("slow node {}: machine '{}' has nodes 0 to {}", one.node, machine.name,
                                         node_count(machine) - 1));
        }
        if (!(one.times > 0) || !std::isfinite(one.times)) {
            throw InputError(fmt::format("slow node {}: {} times is not above 0 and finite", one.node, one.times));
        }
        std::int64_t first = 0, node = one.node;
        for (const NodeKind& kind : machine.nodes) {
            const std::int64_t here = std::min(node, kind.count);
            first += here * devices_per_node(kind);
            if (node < kind.count) {
                for (std::int64_t d = first; d < std::min(ranks, first + devices_per_node(kind)); ++d) {
                    paces[static_cast<std::size_t>(d)] *= one.times;
                }
                break;
            }
            node -= kind.count;
        }
    }
    return paces;
}

double pace_of(std::vector<double> paces, std::int64_t k) {
    require(k >= 1 && k <= static_cast<std::int64_t>(paces.size()), "one of the paces");
    const auto place = paces.begin() + (k - 1);
    std::ranges::nth_element(paces, place);
    return *place;
}

}  // namespace rehearse::sim
