// SPDX-License-Identifier: Apache-2.0
// What has no algorithm: all-to-alls, which are a message to each, and single messages.
#include <algorithm>
#include <cmath>

#include "sim/collective/libraries/library_times.hpp"

namespace rehearse::sim {

namespace {

constexpr double parts = 128 * 1024;  // bytes of a message between nodes that are sent at once (src/enqueue.cc)

/// Of what cards carry, what is left where messages meet at their receivers. A thread block serves 8 peers at once
/// (src/include/device.h: NCCL_MAX_DEV_WORK_P2P_PER_BATCH). While these are all, each receiver has one message of each
/// sender; beyond, ranks run apart, and so many of k messages a sender come to a receiver as chance has it: it gets
/// less than its share where fewer than k do, which is the mean of min(1, X / k) over Poisson's X around k.
double met(double peers) {
    constexpr double k = 8, factorial = 40320;
    return peers <= k ? 1 : 1 - std::exp(-k) * std::pow(k, k) / factorial;
}

}  // namespace

/// Each rank sends to all others, those of its node over their links, the others by its network card. There is one
/// message to each, whose receive stands ready. What one end at least sends or gets by the host's memory is as slow as
/// the host; a ring enters and leaves a node by devices that have GPUDirect.
double LibraryTimes::exchange_time(double bytes) const {
    const Communicator& c = priced_;
    const auto n = static_cast<double>(c.ranks()), p = static_cast<double>(c.view.devices);
    const LibraryArchitecture& a = *c.view.architecture;
    const double links = c.view.linked() ? c.view.total() * std::min(a.ring_reached, 1.0) : c.view.pcie;
    // Without links of their own, all that a device sends takes its PCIe link.
    const double inside = p > 1 ? bytes * (c.view.linked() ? p - 1 : n - 1) / n / 1000 / links : 0;
    if (c.nodes == 1) return inside + c.version->ring_base[2] + inside_step(c, false, LibraryProtocol::simple);
    const double leaving = bytes * p * (n - p) / n;
    const double direct = c.view.gpudirect * c.view.gpudirect;
    const double cards = static_cast<double>(c.view.rails) * c.view.nic_wire * transport_->exchange_share / crowding_;
    const double by_host = std::min(cards, wire());  // GB/s
    const double through = leaving / 1000 * (direct / wire() + (1 - direct) / by_host) / met(n - 1);
    // A device's own thread posts a message out and one in, in the library's posting time, or a card takes them in
    // turn.
    double posted =
        (n - p) * std::max(c.version->posting, 2 * p / static_cast<double>(c.view.rails) * transport_->gap_eager);
    if (bytes / n <= transport_->inject_b) posted += (n - p) * transport_->inject;
    const double first = c.version->ring_base[0] + network_step(c, true, LibraryProtocol::simple) + on_the_way(true);
    // The last to be posted still has its own way to go.
    const double last = rendezvous(std::min(bytes / n, parts));
    return first + std::max({inside, through, posted + last});
}

LibraryPrice LibraryTimes::send(Bytes size) const {
    const Communicator& c = priced_;
    LibraryPrice price;
    price.chosen = false;
    price.channels = c.channels.count;
    price.error = c.nodes > 1 ? transport_->error : c.view.architecture->error;
    const double rail = c.nodes > 1 ? wire() / static_cast<double>(c.view.rails) : 0;
    const double direct = c.view.devices > 1 && !c.view.links.empty() ? c.view.links[1] : 0;
    const double links = direct > 0 ? direct : c.view.to_switch > 0 ? c.view.to_switch : c.view.pcie;
    const double step = c.nodes > 1 ? network_step(c, true, LibraryProtocol::simple) + on_the_way(true) +
                                          rendezvous(std::min(size.value, parts))
                                    : inside_step(c, false, LibraryProtocol::simple);
    price.time = Seconds{(c.version->ring_base[0] + step + size.value / 1000 / (c.nodes > 1 ? rail : links)) * 1e-6};
    return price;
}

}  // namespace rehearse::sim
