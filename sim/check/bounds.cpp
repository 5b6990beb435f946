// SPDX-License-Identifier: Apache-2.0
#include "sim/check/bounds.hpp"

#include <algorithm>
#include <variant>

#include "prices/roofline.hpp"

namespace rehearse::sim {

namespace {

constexpr Bytes largest_cache{64.0 * 1024 * 1024};

std::int64_t taps(const Op& op) {
    if (const auto* conv = std::get_if<Conv>(&op)) return conv->window.taps();
    if (const auto* conv = std::get_if<ConvTranspose>(&op)) return conv->window.taps();
    return 1;
}

}  // namespace

Seconds least_time(const Problem& problem, const DeviceClass& device) {
    if (!has_pass(problem.op, problem.pass)) return {};
    const auto peak = device.peak.find(problem.type);
    Seconds compute, memory;
    if (peak != device.peak.end()) {
        const Flops all = flops(problem.op, problem.pass, problem.batch);
        compute = all / static_cast<double>(taps(problem.op)) / peak->second.value;
    }
    const Bytes moved = library_bytes(problem, device) - largest_cache;
    if (moved > Bytes{} && device.memory_bandwidth.value > Bandwidth{}) memory = moved / device.memory_bandwidth.value;
    return std::max(compute, memory);
}

Bytes least_crossing(CollectiveKind kind, std::int64_t parts, Bytes whole) {
    const auto others = static_cast<double>(parts - 1);
    switch (kind) {
        case CollectiveKind::all_reduce:
            return 2 * others * whole;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
        case CollectiveKind::broadcast:
        case CollectiveKind::all_to_all:
            return others * whole;
        case CollectiveKind::halo:  // who needs what depends on the windows of the layer
            return {};
    }
    return {};
}

}  // namespace rehearse::sim
