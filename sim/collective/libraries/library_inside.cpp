// SPDX-License-Identifier: Apache-2.0
// What the links and switches of a node take, and collectives that switches sum.
#include <algorithm>
#include <cmath>

#include "sim/collective/libraries/library_times.hpp"
#include "sim/collective/libraries/pieces.hpp"

namespace rehearse::sim {

namespace {

using Protocol = LibraryProtocol;
using enum LibraryAlgorithm;

constexpr double last_turn = 2.0 / 3;  // of a step's time, in which a ring's chunk is copied and not sent

}  // namespace

double LibraryTimes::through_switch() const { return priced_.view.to_switch > 0 ? library_->switch_step : 0; }

/// Over direct links rings have what their packets leave. Through a switch the thread blocks bind them: each of a
/// chunk's steps sends it, and in one turn more the last rank copies it out of its buffer, which is two of the three
/// accesses to memory that a step takes (src/device/all_reduce.h: receive, add and send; receive, copy and send).
double LibraryTimes::ring_reached(double steps, Protocol q) const {
    const NodeView& view = priced_.view;
    if (!view.linked()) return 1;
    const LibraryArchitecture& a = *view.architecture;
    if (view.to_switch == 0) return a.direct_reached * (q == Protocol::ll128 ? a.direct_ll128 : 1);
    return a.ring_reached * steps / (steps + last_turn);
}

/// Two loops of chunks are under way through switches (and, on several nodes, a tree between them) before the first
/// sums come out.
double LibraryTimes::nvls_time(double bytes, Estimate estimate) const {
    const Communicator& c = priced_;
    const LibraryArchitecture& a = *c.view.architecture;
    const bool several = c.nodes > 1;
    const auto heads = static_cast<double>(several ? c.view.rails : c.view.devices);
    const double inside = nvls_bandwidth(c) * a.nvls_reached;
    const double rate = several ? std::min(inside, wire() / (c.nodes > 2 ? 2 : 1)) : inside;
    const double levels = several ? std::floor(std::log2(static_cast<double>(c.nodes))) : 0;
    const double step = c.version->nvls_network * transport_->step;
    const double later = 2 * levels * (step - c.version->nvls_network);
    const double loop = nvls_loop(bytes, static_cast<double>(a.nvls_channels), heads, several);
    const double pace = several ? paced(bytes / loop, step) : 0;
    return estimate.latency + later + std::max((bytes + 2 * loop) / 1000 / rate, pace);
}

/// CollNet and PAT: all data leave a node once, and come in once; of CollNet no faster than switches between nodes sum.
double LibraryTimes::once_across(double bytes, Estimate estimate) const {
    double rate = std::min(estimate.bandwidth, wire());
    const bool summed = estimate.algorithm == collnet;
    if (summed && sums_ > 0) rate = std::min(rate, static_cast<double>(priced_.view.rails) * sums_ / crowding_);
    return std::max(estimate.latency, summed ? sums_latency_ : 0) + bytes / 1000 / rate;
}

double LibraryTimes::in_a_node(CollectiveKind kind, double bytes, Estimate best) const {
    const Communicator& c = priced_;
    if (best.algorithm == nvls) return nvls_time(bytes, best);
    const double steps = best.algorithm == ring   ? ring_steps(kind, c.ranks(), 1).all
                         : best.algorithm == tree ? 2 * static_cast<double>(c.view.devices - 1)
                                                  : 0;
    const auto blocks =
        static_cast<double>(thread_blocks(bytes, c.channels.count, c.ranks(), best.algorithm, best.protocol));
    const double each =
        best.algorithm == ring ? bytes / blocks / static_cast<double>(c.ranks()) : std::min(bytes / blocks, ll_lines);
    return best.latency + steps * (through_switch() + passing_on(each, best.protocol)) +
           bytes / 1000 / (best.bandwidth * ring_reached(steps, best.protocol));
}

}  // namespace rehearse::sim
