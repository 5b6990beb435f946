// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/libraries/library_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace rehearse::sim {

namespace {

using Protocol = LibraryProtocol;
using enum LibraryAlgorithm;

constexpr double kibi = 1024;
constexpr double ring_chunk = 2048 * kibi;      // Simple, of which a slice is half (src/enqueue.cc)
constexpr double tree_chunk_most = 512 * kibi;  // Simple
constexpr double tree_chunk_least = 32 * kibi;  // Simple and LL128
constexpr double ll_chunk = 32 * kibi;          // what a thread block sends at once, flags apart
constexpr double ll128_chunk_most = 576 * kibi;
constexpr std::int64_t faster_ll = 21900;  // the version
constexpr std::int64_t most_blocks = 64;

/// Bytes on the wire for one of data: LL has 4 bytes of flag for 4 of data, LL128 8 for 120.
double on_wire(Protocol q) { return q == Protocol::ll ? 2 : q == Protocol::ll128 ? 128.0 / 120 : 1; }

// Halved while the pipeline has too few of them to fill (src/enqueue.cc).
double tree_chunk(double each, double depth) {
    double chunk = tree_chunk_most;
    const auto halve = [&](double times, double least) {
        while (each / chunk < depth * times && chunk > least) chunk /= 2;
    };
    halve(8, 128 * kibi);
    halve(4, 64 * kibi);
    halve(1, tree_chunk_least);
    return std::min(chunk, each);
}

// ... of LL128, whose threshold grows with the nodes.
double ll128_chunk(double each, double levels, double devices) {
    const double steps = 1 + levels + 0.1 * devices;
    double chunk = tree_chunk_most;
    while (each / chunk < steps * 64 / devices && chunk > 128 * kibi) chunk /= 2;
    while (each / chunk < steps * 16 / devices && chunk > tree_chunk_least) chunk /= 2;
    return std::min(chunk, each);
}

}  // namespace

std::int64_t thread_blocks(double bytes, std::int64_t channels, std::int64_t ranks, LibraryAlgorithm algorithm,
                           Protocol q) {
    std::int64_t blocks = std::min(2 * channels, most_blocks);
    const double threads = q == Protocol::ll128 ? 640 : 512;
    double threshold = q == Protocol::simple ? 64 : 8;  // bytes a thread
    if (q == Protocol::ll && algorithm == ring) threshold *= static_cast<double>(ranks);
    while (blocks > 1 && bytes < static_cast<double>(blocks) * threads * threshold) --blocks;
    return blocks;
}

LibraryTimes::LibraryTimes(const Machine& machine, const CollectiveSoftware& said, std::size_t kind, std::int64_t nodes,
                           std::span<const int> devices, double crowding, Bandwidth most)
    : crowding_(crowding), most_(most.value / 1e9) {
    communicator_.view = view_of(machine, said, machine.nodes.at(kind), devices);
    communicator_.nodes = nodes;
    library_ = said.library;
    const CollectiveLibrary& library = *library_;
    communicator_.ll_across = library.ll_across;
    communicator_.sharp = said.sharp;
    for (const LibraryVersion& each : library.versions) {
        const bool ours = each.architecture.empty() || each.architecture == communicator_.view.architecture->name;
        if (ours && (said.version == 0 || each.since <= said.version)) communicator_.version = &each;
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
    const auto named = std::ranges::find(library.transports, said.transport, &LibraryTransport::name);
    transport_ = named == library.transports.end() ? &library.transports.front() : &*named;
}

double LibraryTimes::wire() const {
    const NodeView& view = communicator_.view;
    const double through = view.nic_at == NicTurn::in_cpu ? transport_->through_cpu : 1;
    const double out = static_cast<double>(view.rails) * view.nic_wire * transport_->share * through;
    return (most_ > 0 ? std::min(out, most_) : out) / crowding_;
}

double LibraryTimes::through_switch() const { return communicator_.view.to_switch > 0 ? library_->switch_step : 0; }

double LibraryTimes::rendezvous(double message) const {
    const double kb = message / kibi;
    if (kb <= transport_->eager_kb || transport_->rendezvous == 0) return 0;
    return std::min(transport_->rendezvous * std::pow(kb, transport_->power), transport_->most);
}

double LibraryTimes::gap(double message, Protocol q) const {
    if (message <= 2 * kibi) return transport_->gap_eager;
    if (q != Protocol::simple) return transport_->gap_ll;
    return std::max(transport_->gap_eager, transport_->gap_16kb * std::min(message, 32 * kibi) / (16 * kibi));
}

double LibraryTimes::tree_gap(double message) const {
    return std::max(transport_->gap_eager, transport_->gap_tree_16kb * std::min(message, 64 * kibi) / (16 * kibi));
}

/// All chunks go round at once, each from rank to rank: what takes longest is the wire, one chunk's way round the ring,
/// or the thread that posts every message of a network card; before the wire, the first chunks' way is not hidden by
/// any other. A call of few steps finds all of its receives posted.
double LibraryTimes::ring_time(CollectiveKind kind, double bytes, Estimate estimate, std::int64_t blocks) const {
    const Communicator& c = communicator_;
    const Protocol q = estimate.protocol;
    const auto n = static_cast<double>(c.ranks()), nodes = static_cast<double>(c.nodes),
               b = static_cast<double>(blocks), rails = static_cast<double>(c.view.rails);
    const RingSteps steps = ring_steps(kind, c.ranks(), c.nodes);
    const double most = q == Protocol::simple ? ring_chunk : q == Protocol::ll ? ll_chunk : ll128_chunk_most;
    // LL's chunks are so small that each turn waits for the one before; larger ones overlap.
    const double loops = q == Protocol::ll ? std::max(1.0, std::ceil(bytes / b / n / most)) : 1;
    const double chunk = std::min(bytes / b / n / loops, most);
    const double slice = q == Protocol::simple ? chunk / 2 : chunk;
    const double message = slice * on_wire(q);
    const double rate =
        std::min(wire() / on_wire(q), q == Protocol::simple ? wire() : estimate.bandwidth * steps.all / n);
    const double through = bytes * steps.all / n / 1000 / std::min(rate, wire() / on_wire(q));
    const double inside = inside_step(c, false, q) + through_switch();
    const double network = network_step(c, false, q) * transport_->step;
    // A thread block moves as much as a channel's half at its fastest.
    const double block_rate = c.view.architecture->tree[0] / 2 / on_wire(q);
    const double trip = nodes * (network + rendezvous(message) + slice * on_wire(q) * b / 1000 / wire()) +
                        (n - nodes) * (inside + slice / 1000 / block_rate);
    const bool ready = q != Protocol::simple && steps.all * loops <= transport_->window;
    const double messages = 2 * steps.all * loops * std::max(1.0, b / rails) * (q == Protocol::simple ? 2 : 1);
    const double posted = messages * (ready ? transport_->gap_eager : gap(message, q));
    const double base = c.version->ring_base[static_cast<std::size_t>(q)];
    const double first = q == Protocol::simple ? transport_->unhidden * (estimate.latency - base) : 0;
    return base + std::max({first + through, loops * steps.all / n * trip, posted});
}

/// Up a chain in each node and a double tree between nodes, and down again, in pieces.
double LibraryTimes::tree_time(double bytes, Estimate estimate, std::int64_t blocks) const {
    const Communicator& c = communicator_;
    const Protocol q = estimate.protocol;
    const auto b = static_cast<double>(blocks), rails = static_cast<double>(c.view.rails);
    const double levels = std::floor(std::log2(static_cast<double>(c.nodes)));
    const double depth = static_cast<double>(c.view.devices - 1) + levels;
    const double each = bytes / b;
    const double chunk = q == Protocol::simple  ? tree_chunk(each, depth)
                         : q == Protocol::ll128 ? ll128_chunk(each, levels, static_cast<double>(c.view.devices))
                                                : std::min(each, ll_chunk);
    const double message = std::min(chunk, tree_chunk_least) * on_wire(q);
    const double late = q == Protocol::ll && since_ >= faster_ll ? transport_->late_ll : 1;
    const double step = network_step(c, true, q);
    const double latency = estimate.latency +
                           2 * levels * (step * (transport_->step * late - 1) + rendezvous(message) * late) +
                           2 * static_cast<double>(c.view.devices - 1) * through_switch();
    // A node sends and gets all data twice, once to and from above and once below; of two nodes, once.
    const double both = c.nodes == 2 ? 1 : 2;
    const double through = bytes / 1000 / std::min(estimate.bandwidth, wire() / both / on_wire(q));
    const double pieces = bytes / std::max(chunk, 1.0);
    const double posted = pieces * 2 * both / rails * tree_gap(chunk * on_wire(q)) * late;
    return latency + std::max(through, posted);
}

/// Each rank sends to all others, those of its node over their links, the others by its network card. There is one
/// message to each, whose receive stands ready.
double LibraryTimes::exchange_time(double bytes) const {
    const Communicator& c = communicator_;
    const auto n = static_cast<double>(c.ranks()), p = static_cast<double>(c.view.devices);
    const LibraryArchitecture& a = *c.view.architecture;
    const double links = c.view.linked() ? c.view.total() * std::min(a.ring_reached, 1.0) : c.view.pcie;
    const double inside = p > 1 ? bytes * (p - 1) / n / 1000 / links : 0;
    if (c.nodes == 1) return inside + c.version->ring_base[2] + inside_step(c, false, Protocol::simple);
    const double leaving = bytes * p * (n - p) / n;
    const double through = leaving / 1000 / (wire() * transport_->exchange_share);
    double posted = 2 * (n - p) * p / static_cast<double>(c.view.rails) * transport_->gap_eager;
    if (bytes / n <= transport_->inject_b) posted += (n - p) * transport_->inject;
    const double first = c.version->ring_base[0] + network_step(c, true, Protocol::simple) * transport_->step;
    return first + std::max({inside, through, posted});
}

double LibraryTimes::in_a_node(CollectiveKind kind, double bytes, Estimate best) const {
    const Communicator& c = communicator_;
    const LibraryArchitecture& a = *c.view.architecture;
    const double reached = best.algorithm == nvls ? a.nvls_reached : c.view.linked() ? a.ring_reached : 1;
    const double steps = best.algorithm == ring   ? ring_steps(kind, c.ranks(), 1).all
                         : best.algorithm == tree ? 2 * static_cast<double>(c.view.devices - 1)
                                                  : 0;
    return best.latency + steps * through_switch() + bytes / 1000 / (best.bandwidth * reached);
}

double LibraryTimes::between_nodes(CollectiveKind kind, double bytes, Estimate best) const {
    const Communicator& c = communicator_;
    // How often all data cross a node's cards, each way.
    const bool tree_like = best.algorithm == tree || best.algorithm == nvls_tree;
    const double crossing = tree_like && c.nodes > 2 ? 2 : 1;
    if (c.by_shares()) {
        const double turns = ring_steps(kind, c.ranks(), c.nodes).all / static_cast<double>(c.ranks());
        return std::max(best.time, bytes * (best.algorithm == ring ? turns : crossing) / 1000 / wire());
    }
    const std::int64_t blocks = thread_blocks(bytes, c.channels.count, c.ranks(), best.algorithm, best.protocol);
    if (best.algorithm == ring) return ring_time(kind, bytes, best, blocks);
    if (best.algorithm == tree) return tree_time(bytes, best, blocks);
    return best.latency + bytes / 1000 / std::min(best.bandwidth, wire() / crossing);
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
    } else {
        const Estimate best = chosen(estimates(c, kind, bytes), algorithm, protocol);
        price.algorithm = best.algorithm;
        price.protocol = best.protocol;
        time = c.nodes > 1 ? between_nodes(kind, bytes, best) : in_a_node(kind, bytes, best);
    }
    price.time = Seconds{(library_->call + time) * 1e-6};
    return price;
}

LibraryPrice LibraryTimes::send(Bytes size) const {
    const Communicator& c = communicator_;
    LibraryPrice price;
    price.chosen = false;
    price.channels = c.channels.count;
    price.error = c.nodes > 1 ? transport_->error : c.view.architecture->error;
    const double rail = c.nodes > 1 ? wire() / static_cast<double>(c.view.rails) : 0;
    const double direct = c.view.devices > 1 && !c.view.links.empty() ? c.view.links[1] : 0;
    const double links = direct > 0 ? direct : c.view.to_switch > 0 ? c.view.to_switch : c.view.pcie;
    const double step = c.nodes > 1 ? network_step(c, true, Protocol::simple) * transport_->step +
                                          rendezvous(std::min(size.value, 128 * kibi))
                                    : inside_step(c, false, Protocol::simple);
    price.time = Seconds{
        (library_->call + c.version->ring_base[0] + step + size.value / 1000 / (c.nodes > 1 ? rail : links)) * 1e-6};
    return price;
}

}  // namespace rehearse::sim
