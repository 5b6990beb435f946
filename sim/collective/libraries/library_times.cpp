// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/libraries/library_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "sim/collective/libraries/pieces.hpp"

namespace rehearse::sim {

namespace {

using Protocol = LibraryProtocol;
using enum LibraryAlgorithm;

constexpr double kibi = 1024;
constexpr double ll_checked = 10;  // GB/s of data whose lines the host looks at: two nodes of 8 A100 (Crusoe, OCI)
constexpr std::int64_t faster_ll = 21900;  // the version

}  // namespace

LibraryTimes::LibraryTimes(const Machine& machine, const CollectiveSoftware& said, std::size_t kind, std::int64_t nodes,
                           std::span<const int> devices, double crowding, Bandwidth most)
    : crowding_(crowding), most_(most.value / 1e9) {
    communicator_.view = view_of(machine, said, machine.nodes.at(kind), devices);
    communicator_.nodes = nodes;
    library_ = said.library;
    const CollectiveLibrary& library = *library_;
    communicator_.ll_across = library.ll_across;
    communicator_.sharp = said.sharp;
    sums_ = machine.fabric.sums.rate.value.value / 1e9;
    sums_latency_ = machine.fabric.sums.latency.value.value * 1e6;
    for (const LibraryVersion& each : library.versions) {
        const bool ours = each.architecture.empty() || each.architecture == communicator_.view.architecture->name;
        if (ours && !each.prices && (said.version == 0 || each.since <= said.version)) communicator_.version = &each;
    }
    if (communicator_.version == nullptr)
        throw InputError(fmt::format("{}: machine '{}': {} of this version knows no {}", machine.origin, machine.name,
                                     library.name, communicator_.view.architecture->name));
    since_ = communicator_.version->since;
    if (nodes > 1 && communicator_.view.rails == 0) {
        throw InputError(
            fmt::format("{}: machine '{}': {} nodes without network cards", machine.origin, machine.name, nodes));
    }
    communicator_.channels = channels_of(communicator_.view, nodes);
    const auto named = std::ranges::find(*library.transports, said.transport, &LibraryTransport::name);
    transport_ = named == library.transports->end() ? &library.transports->front() : &*named;
    communicator_.transport = transport_;
    priced_ = communicator_;
    for (const LibraryVersion& each : library.versions) {
        if (each.architecture.empty() || each.architecture == communicator_.view.architecture->name)
            priced_.version = &each;
    }
}

Estimate LibraryTimes::priced(CollectiveKind kind, double bytes, const Estimate& best) const {
    for (const Estimate& each : estimates(priced_, kind, bytes)) {
        if (each.algorithm == best.algorithm && each.protocol == best.protocol) return each;
    }
    return best;  // an algorithm that newer versions no longer have
}

double LibraryTimes::wire() const {
    const NodeView& view = priced_.view;
    const double through = view.nic_at == NicTurn::in_cpu ? transport_->through_cpu : 1;
    const double out = static_cast<double>(view.rails) * view.nic_wire * transport_->share * through;
    return (most_ > 0 ? std::min(out, most_) : out) / crowding_;
}

double LibraryTimes::ring_carried(double steps, Protocol q) const {
    const NodeView& view = priced_.view;
    if (view.devices < 2) return wire();
    return std::min(wire(), view.linked() ? view.total() * ring_reached(steps, q) : view.pcie);
}

double LibraryTimes::on_the_way(bool tree_) const {
    return network_step(priced_, tree_, Protocol::ll) * (transport_->step - 1);
}

double LibraryTimes::rendezvous(double message) const {
    const double kb = message / kibi;
    if (kb <= transport_->eager_kb || transport_->rendezvous == 0) return 0;
    return std::min(transport_->rendezvous * std::pow(kb, transport_->power), transport_->most);
}

double LibraryTimes::passing_on(double bytes, Protocol q) const {
    const double rate = priced_.view.architecture->ll_block;
    return q == Protocol::ll && rate > 0 ? bytes / 1000 / rate : 0;
}

double LibraryTimes::passing_across(double bytes, Protocol q) const {
    return q == Protocol::ll ? std::max(passing_on(bytes, q), bytes / 1000 / ll_checked) : 0;
}

double LibraryTimes::gap(double message, Protocol q) const {
    if (message <= 2 * kibi) return transport_->gap_eager;
    if (q != Protocol::simple) return transport_->gap;
    return std::max(transport_->gap_eager, transport_->gap * std::min(message / (32 * kibi), 1.0));
}

double LibraryTimes::tree_gap(double message) const {
    return std::max(transport_->gap_eager, transport_->gap_tree_16kb * std::min(message, 64 * kibi) / (16 * kibi));
}

double LibraryTimes::ring_posted(const RingPieces& pieces, double steps, Protocol q, double blocks) const {
    const bool ready = q != Protocol::simple && steps * pieces.loops <= transport_->window;
    const double messages = 2 * steps * pieces.loops * std::max(1.0, blocks / static_cast<double>(priced_.view.rails)) *
                            (q == Protocol::simple ? 2 : 1);
    return messages * (ready ? transport_->gap_eager : gap(pieces.message, q));
}

/// All chunks go round at once, each from rank to rank: what takes longest is the wire, one chunk's way round the ring,
/// or the thread that posts every message of a network card; before the wire, the first chunks' way is not hidden by
/// any other. A call of few steps finds all of its receives posted.
double LibraryTimes::ring_time(CollectiveKind kind, double bytes, Estimate estimate, std::int64_t blocks) const {
    const Communicator& c = priced_;
    const Protocol q = estimate.protocol;
    const auto n = static_cast<double>(c.ranks()), nodes = static_cast<double>(c.nodes),
               b = static_cast<double>(blocks);
    const double steps = ring_steps(kind, c.ranks(), c.nodes).all;
    const RingPieces pieces = ring_pieces(bytes / b / n, q);
    const double posted = ring_posted(pieces, steps, q, b);
    const double carried = ring_carried(steps, q);
    const double rate =
        std::min(carried / on_wire(q), q == Protocol::simple ? carried : estimate.bandwidth * steps / n);
    const double through = bytes * steps / n / 1000 / rate;
    const double inside = inside_step(c, false, q) + through_switch();
    const double network = network_step(c, false, q) + on_the_way(false);
    // A thread block moves as much as a channel's half at its fastest.
    const double lines = passing_on(pieces.slice, q);
    const double hop = lines > 0 ? lines : pieces.slice / 1000 / (c.view.architecture->tree[0] / 2 / on_wire(q));
    const double trip = nodes * (network + passing_across(pieces.slice, q) + rendezvous(pieces.message) +
                                 pieces.message * b / 1000 / wire()) +
                        (n - nodes) * (inside + hop);
    const double base = c.version->ring_base[static_cast<std::size_t>(q)];
    const double first = q == Protocol::simple ? transport_->unhidden * (estimate.latency - base) : 0;
    return base + std::max({first + through, pieces.loops * steps / n * trip, posted});
}

/// By Simple a rank passes a chunk on when it has all of it, as fast as a thread block copies; by LL and LL128 line by
/// line, but what goes to another node waits for the whole chunk, and takes its share of the wire. Where a rendezvous
/// takes longer the larger its message, that figure was measured with it. One chunk's share of the wire is in the
/// data's.
double LibraryTimes::filling(double chunk, double levels, double blocks, LibraryProtocol q) const {
    const Communicator& c = priced_;
    const double copied = chunk / 1000 / (c.view.architecture->tree[0] / 2);
    const double sent = chunk * on_wire(q) / 1000 * blocks / wire();
    const double written = q == Protocol::ll ? passing_across(std::max(chunk - ll_lines, 0.0), q) : copied;
    const double over_links = q == Protocol::simple ? 2 * static_cast<double>(c.view.devices - 1) * copied : 0;
    const double between = 2 * levels * (sent + written - rendezvous(tree_message(chunk, q))) - sent;
    return std::max(over_links + between, 0.0);
}

/// Up a chain in each node and a double tree between nodes, and down again, in pieces.
double LibraryTimes::tree_time(double bytes, Estimate estimate, std::int64_t blocks) const {
    const Communicator& c = priced_;
    const Protocol q = estimate.protocol;
    const auto b = static_cast<double>(blocks), rails = static_cast<double>(c.view.rails);
    const double levels = std::floor(std::log2(static_cast<double>(c.nodes)));
    const double chunk = tree_piece(bytes / b, q, levels, static_cast<double>(c.view.devices));
    const double message = tree_message(chunk, q);
    const double late = q == Protocol::ll && since_ >= faster_ll ? transport_->late_ll : 1;
    const double step = network_step(c, true, q);
    const double lines = std::min(chunk, ll_lines), inside = static_cast<double>(c.view.devices) - 1;
    const double latency = estimate.latency + 2 * (levels * passing_across(lines, q) + inside * passing_on(lines, q)) +
                           2 * levels * (step * (late - 1) + (on_the_way(true) + rendezvous(message)) * late) +
                           2 * static_cast<double>(c.view.devices - 1) * through_switch();
    // A node sends and gets all data twice, once to and from above and once below; of two nodes, once.
    const double both = c.nodes == 2 ? 1 : 2;
    const double through = bytes / 1000 / std::min(estimate.bandwidth, wire() / both / on_wire(q));
    const double pieces = bytes / std::max(chunk, 1.0);
    const double pace = paced(pieces / b, step + on_the_way(true) + rendezvous(message));
    const double posted = pieces * 2 * both / rails * tree_gap(chunk * on_wire(q)) * late;
    return latency + filling(chunk, levels, b, q) + std::max({through, posted, pace, passing_across(bytes / b, q)});
}

double LibraryTimes::between_nodes(CollectiveKind kind, double bytes, Estimate best) const {
    const Communicator& c = priced_;
    const std::int64_t blocks = thread_blocks(bytes, c.channels.count, c.ranks(), best.algorithm, best.protocol);
    if (best.algorithm == ring) return ring_time(kind, bytes, best, blocks);
    if (best.algorithm == tree) return tree_time(bytes, best, blocks);
    if (best.algorithm == nvls_tree) return nvls_time(bytes, best);
    return once_across(bytes, best);
}

LibraryPrice LibraryTimes::price(CollectiveKind kind, Bytes size, const std::string& algorithm,
                                 const std::string& protocol) const {
    const Communicator& c = communicator_;
    const double bytes = size.value;
    LibraryPrice price;
    price.channels = c.channels.count;
    price.error =
        c.nodes > 1 ? std::hypot(transport_->error, c.view.architecture->error / 2) : c.view.architecture->error;
    if (c.ranks() < 2) return price;
    double time = 0;
    if (kind == CollectiveKind::all_to_all) {
        price.chosen = false;
        time = exchange_time(bytes);
        price.blocks = thread_blocks(bytes, c.channels.count, c.ranks(), ring, Protocol::simple);
    } else {
        const Estimate best = chosen(estimates(c, kind, bytes), algorithm, protocol);
        price.algorithm = best.algorithm;
        price.protocol = best.protocol;
        const Estimate taken = priced(kind, bytes, best);
        time = c.nodes > 1 ? between_nodes(kind, bytes, taken) : in_a_node(kind, bytes, taken);
        const bool by_switches = best.algorithm == nvls || best.algorithm == nvls_tree;
        price.blocks = by_switches ? c.view.architecture->nvls_channels
                                   : thread_blocks(bytes, c.channels.count, c.ranks(), best.algorithm, best.protocol);
    }
    price.time = Seconds{time * 1e-6};
    return price;
}

}  // namespace rehearse::sim
