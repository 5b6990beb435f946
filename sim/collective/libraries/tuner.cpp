// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/libraries/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"

namespace rehearse::sim {

namespace {

using enum LibraryAlgorithm;
using Protocol = LibraryProtocol;
constexpr std::array protocols{Protocol::ll, Protocol::ll128, Protocol::simple};
constexpr std::size_t index(Protocol protocol) { return static_cast<std::size_t>(protocol); }

double log2_nodes(const Communicator& c) { return std::floor(std::log2(static_cast<double>(c.nodes))); }

// As this version counts them, which is not how many there are.
RingSteps believed_steps(const Communicator& c, CollectiveKind kind) {
    RingSteps steps = ring_steps(kind, c.ranks(), c.nodes);
    if (c.version->closed_rings && kind == CollectiveKind::all_reduce && c.nodes > 1)
        steps.across = 2 * static_cast<double>(c.nodes);
    return steps;
}

double log_size(double bytes) { return std::floor(std::log2(std::max(1.0, bytes / 64))); }

// By which the library multiplies a bandwidth at this size; beyond its table NCCL by nothing, RCCL as at the end.
double corrected(const std::vector<double>& correction, double bytes, bool goes_on) {
    const double log = log_size(bytes);
    if (log < static_cast<double>(correction.size())) return correction[static_cast<std::size_t>(log)];
    return goes_on && !correction.empty() ? correction.back() : 1;
}

double ll_limit(const Communicator& c) {
    return c.nodes == 1 ? c.view.architecture->ll_inside : c.ll_across[c.by_nodes()];
}

// LL128 stores 128 bytes at once, which only GPU-to-GPU links and cards behind a PCIe switch keep together.
bool has_ll128(const Communicator& c) {
    if (c.by_shares() && !(c.version->ring_share[0][1] > 0)) return false;
    if (c.view.devices > 1 && !c.view.linked()) return false;
    return c.nodes == 1 || c.view.nic_at != NicTurn::in_cpu;
}

Estimate ring_estimate(const Communicator& c, CollectiveKind kind, double bytes, Protocol q) {
    const LibraryArchitecture& a = *c.view.architecture;
    const double bus = c.channels.bus(c.nodes);
    const auto count = static_cast<double>(c.channels.count);
    double carried = q == Protocol::ll      ? std::min(ll_limit(c), bus * c.version->ring_ll_share)
                     : q == Protocol::ll128 ? std::min(0.92 * bus, count * a.ring_ll128)
                                            : bus;
    if (c.by_shares()) {
        carried = bus * c.version->ring_share[c.nodes > 2 ? 1 : 0][index(q)];
        if (c.nodes > 1) carried *= corrected(c.version->ring_correction[index(q)], bytes, true);
    }
    const RingSteps steps = believed_steps(c, kind);
    double inside = inside_step(c, false, q);
    if (c.nodes > 1) inside = std::max(inside, c.version->posting * (q == Protocol::simple ? 3 : 1));
    double latency =
        c.version->ring_base[index(q)] + (steps.all - steps.across) * inside + steps.across * network_step(c, false, q);
    const bool plateau = q == Protocol::simple && c.nodes > 1 && kind == CollectiveKind::all_reduce;
    if (plateau && bytes / (count * static_cast<double>(c.ranks())) >= 64)
        latency *= c.version->plateau > 0 ? c.version->plateau : a.plateau;
    return {ring, q, latency, carried * static_cast<double>(c.ranks()) / steps.all, 0};
}

Estimate tree_estimate(const Communicator& c, double bytes, Protocol q) {
    const LibraryArchitecture& a = *c.view.architecture;
    const auto count = static_cast<double>(c.channels.count);
    const double speed = c.nodes == 2 ? c.channels.tree_inside : c.channels.inside;
    double carried = std::min(0.92 * count * speed, count * a.tree[c.by_nodes()]);
    if (q == Protocol::ll) carried = std::min(carried / 3.8, ll_limit(c));
    if (q == Protocol::ll128)
        carried = std::min(carried * (c.nodes == 1 ? 7.0 / 9 : 120.0 / 128), count * a.tree_ll128[c.by_nodes()]);
    if (c.by_shares()) carried = c.channels.bus(c.nodes) * c.version->tree_share[c.nodes > 2 ? 1 : 0][index(q)];
    carried *= corrected(c.version->tree_correction[index(q)], bytes, c.by_shares());
    const auto chain = static_cast<double>(c.view.devices - 1);
    const double latency = c.version->tree_base[index(q)] +
                           2 * (chain * inside_step(c, true, q) + log2_nodes(c) * network_step(c, true, q));
    return {tree, q, latency, carried / 2, 0};
}

Estimate nvls_estimate(const Communicator& c) {
    return {nvls, Protocol::simple, c.version->nvls_inside, nvls_bandwidth(c), 0};
}

// The switches sum inside nodes, a double tree between them, one for each of a node's network cards.
Estimate nvls_tree_estimate(const Communicator& c, double bytes) {
    const LibraryArchitecture& a = *c.view.architecture;
    const auto heads = static_cast<double>(c.view.rails);
    const double inside = c.view.total() / heads * a.nvls_efficiency * 2;
    double bus = heads * std::min({inside, c.channels.across * (c.nodes == 2 ? 2 : 1), a.nvls[c.by_nodes()]});
    if (a.nvls[2] >= 80) bus *= corrected(c.version->tree_correction[2], bytes, false);
    return {nvls_tree, Protocol::simple, c.version->nvls_inside + 2 * log2_nodes(c) * c.version->nvls_network, bus / 2,
            0};
}

// Switches between nodes that sum (SHARP). Simple as in 2.12's table: 0.9 of the bus.
Estimate collnet_estimate(const Communicator& c) {
    const double bus = static_cast<double>(c.channels.count) * c.channels.inside * 0.9;
    const double latency = 2 * static_cast<double>(c.view.devices - 1) * 4.0 + 10.7;
    return {collnet, Protocol::simple, latency, bus / 2, 0};
}

Estimate pat_estimate(const Communicator& c) {
    const double bus = c.channels.bus(c.nodes);
    const auto n = static_cast<double>(c.ranks());
    const double latency =
        c.version->pat_base + log2_nodes(c) * network_step(c, false, Protocol::simple) / 3.5 + c.version->pat_rank * n;
    return {pat, Protocol::simple, latency, 0.75 * bus * n / (n - 1), 0};
}

// us that a transport's plugin reports of all its steps between nodes, which the library adds to what it believes.
double reported(const Communicator& c, CollectiveKind kind, const Estimate& estimate) {
    if (c.nodes == 1) return 0;
    const double each = c.transport->latency * (estimate.protocol == Protocol::simple ? 2 : 1);
    if (estimate.algorithm == ring) return believed_steps(c, kind).across * each;
    return estimate.algorithm == tree || estimate.algorithm == nvls_tree ? 2 * log2_nodes(c) * each : 0;
}

bool keeps_order(const Communicator& c, Protocol q) {
    if (c.nodes == 1 || c.transport->protocols.empty()) return true;
    return std::ranges::find(c.transport->protocols, q) != c.transport->protocols.end();
}

}  // namespace

// Every device sends all of its data to the switches and gets the sum.
double nvls_bandwidth(const Communicator& c) {
    const LibraryArchitecture& a = *c.view.architecture;
    const auto n = static_cast<double>(c.view.devices);
    const double most = c.view.total() * n / (n - 1) / n;
    double speed = 0;
    for (const double each : a.speeds_inside) speed = std::max(speed, each <= most + 1e-6 ? each : 0);
    const double bus = n * speed * a.nvls_efficiency * (n - 1) / n * 2;
    return bus * n / (2 * (n - 1));
}

RingSteps ring_steps(CollectiveKind kind, std::int64_t ranks, std::int64_t nodes) {
    const auto n = static_cast<double>(ranks), m = static_cast<double>(nodes);
    if (kind == CollectiveKind::all_reduce) return {2 * (n - 1), 2 * (m - 1)};
    if (kind == CollectiveKind::broadcast) return {n, nodes > 1 ? m : 0};
    return {n - 1, m - 1};
}

double inside_step(const Communicator& c, bool tree_, Protocol q) {
    const LibraryVersion& v = *c.version;
    if (c.view.linked()) return (tree_ ? v.tree_link : v.ring_link)[index(q)];
    return (tree_ ? v.tree_pcie : v.ring_pcie)[index(q)];
}

double network_step(const Communicator& c, bool tree_, Protocol q) {
    return (tree_ || c.view.devices == 1 ? c.version->tree_network : c.version->ring_network)[index(q)];
}

std::vector<Estimate> estimates(const Communicator& c, CollectiveKind kind, double bytes) {
    std::vector<Estimate> all;
    if (kind == CollectiveKind::all_to_all || c.ranks() < 2) return all;
    const bool sums = kind == CollectiveKind::all_reduce;
    for (const LibraryAlgorithm algorithm : c.version->algorithms) {
        for (const Protocol q : protocols) {
            if ((q == Protocol::ll128 && !has_ll128(c)) || !keeps_order(c, q)) continue;
            if (algorithm == ring) all.push_back(ring_estimate(c, kind, bytes, q));
            if (algorithm == tree && sums) all.push_back(tree_estimate(c, bytes, q));
        }
        const bool switches_sum = sums && c.view.architecture->nvls_efficiency > 0 && c.view.to_switch > 0;
        if (algorithm == nvls && switches_sum && c.nodes == 1 && c.view.devices > 2) all.push_back(nvls_estimate(c));
        if (algorithm == nvls_tree && switches_sum && c.nodes > 1 && c.view.devices > 2)
            all.push_back(nvls_tree_estimate(c, bytes));
        if (algorithm == collnet && sums && c.sharp && c.nodes > 1) all.push_back(collnet_estimate(c));
        const bool halves = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
        if (algorithm == pat && halves && c.view.devices == 1 && c.nodes > 1) all.push_back(pat_estimate(c));
    }
    std::erase_if(all, [](const Estimate& each) { return !(each.bandwidth > 0); });
    for (Estimate& each : all) each.time = each.latency + reported(c, kind, each) + bytes / (1000 * each.bandwidth);
    return all;
}

Estimate chosen(const std::vector<Estimate>& all, const std::string& algorithm, const std::string& protocol) {
    const auto word = [](const auto& words, auto value) { return words[static_cast<std::size_t>(value)]; };
    const Estimate* best = nullptr;
    for (const Estimate& each : all) {
        if (!algorithm.empty() && word(library_algorithm_words, each.algorithm) != algorithm) continue;
        if (!protocol.empty() && word(library_protocol_words, each.protocol) != protocol) continue;
        if (best == nullptr || each.time < best->time) best = &each;
    }
    if (best != nullptr) return *best;
    std::vector<std::string> there;
    for (const Estimate& each : all)
        there.push_back(fmt::format("{}/{}", word(library_algorithm_words, each.algorithm),
                                    word(library_protocol_words, each.protocol)));
    throw InputError(fmt::format("nccl({},{}): not possible on these devices; possible are {}",
                                 algorithm.empty() ? "any" : algorithm, protocol.empty() ? "any" : protocol,
                                 fmt::join(there, ", ")));
}

}  // namespace rehearse::sim
