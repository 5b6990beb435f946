// SPDX-License-Identifier: Apache-2.0
#include "sim/network/wiring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/collectives/library.hpp"
#include "core/error.hpp"

namespace rehearse::sim {

namespace {

double stretch(const Messaging& messaging, ZScore z_score) {
    return at(Price{Seconds{1}, messaging.error, {}}, z_score).value;
}

void check_messaging(const Machine& machine, const Messaging& messaging, std::string_view where) {
    const double fraction = messaging.fraction.value;
    if (fraction > 0 && fraction <= 1) return;
    throw InputError(
        fmt::format("{}: machine '{}': messaging {} needs a fraction above 0 and at most 1, not {}: give "
                    "[messaging.{}], or measure "
                    "this host with `mpirun -n 2 rehearse calibrate`",
                    machine.origin, machine.name, where, fraction, where));
}

// A machine file without a rate says that combining is free.
PerByte combine_cost(const Messaging& messaging, double times) {
    return messaging.reduce.value.value > 0 ? inverse(messaging.reduce.value) * times : PerByte{0};
}

// Pieces say it by the size of the message.
Seconds overhead(const Messaging& messaging) {
    return messaging.pieces.empty() ? messaging.overhead.value : Seconds{0};
}

// * in the pattern is any text.
bool matches(std::string_view name, std::string_view pattern) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return name == pattern;
    if (name.substr(0, star) != pattern.substr(0, star)) return false;
    for (std::size_t rest = star; rest <= name.size(); ++rest) {
        if (matches(name.substr(rest), pattern.substr(star + 1))) return true;
    }
    return false;
}

// Never faster than the wire, whichever end of the band.
double rate(const Messaging& messaging, double stretch) { return std::min(1.0, messaging.fraction.value / stretch); }

bool is_nccl_since(const CollectiveSoftware& software, std::int64_t version) {
    return software.library && software.library->name == "nccl" &&
           (software.version == 0 || software.version >= version);
}
constexpr std::int64_t sends_for_neighbours = 21200;  // PXN
constexpr std::int64_t passes_neighbours = 20800;     // NVB: "optimized all-to-all performance on DGX-1", its notes say

std::int64_t most_nics(const Machine& machine) {
    std::int64_t most = 0;
    for (const NodeKind& kind : machine.nodes) {
        most = std::max(most, std::int64_t{std::ranges::count(kind.vertices, VertexKind::nic, &Vertex::kind)});
    }
    return most;
}

}  // namespace

Wiring::Wiring(const Machine& machine, ZScore z_score, std::span<const Degraded> degraded,
               std::vector<std::int64_t> nodes)
    : machine_(machine),
      stretch_inside_(stretch(machine.inside, z_score)),
      stretch_across_(stretch(machine.across, z_score)),
      combine_inside_(combine_cost(machine.inside, stretch_inside_)),
      combine_across_(combine_cost(machine.across, stretch_across_)),
      overhead_inside_(overhead(machine.inside) * stretch_inside_),
      overhead_across_(overhead(machine.across) * stretch_across_),
      nodes_(std::move(nodes)) {
    if (device_count(machine) > 1) check_messaging(machine, machine.inside, "inside");
    kinds_.reserve(machine.nodes.size());
    for (const NodeKind& kind : machine.nodes) add_kind(kind);
    if (node_count(machine) > 1) {
        check_messaging(machine, machine.across, "across");
        if (!(machine.fabric.link.value.value > 0)) {
            throw InputError(fmt::format("{}: machine '{}': the fabric's link needs a bandwidth above 0",
                                         machine.origin, machine.name));
        }
        const double scale = rate(machine.across, stretch_across_);
        nic_cost_ = inverse(machine.fabric.link.value * scale);
        switches_ = make_switches(machine, most_nics(machine), scale);
        switches_never_limit_ = std::visit([](const auto& s) { return s.never_limits(); }, switches_);
        if (const auto* tree = std::get_if<FatTree>(&machine.fabric.topology)) rails_ = tree->rails;
        relays_ = rails_ != FatTree::Rails::none && is_nccl_since(machine.collectives, sends_for_neighbours);
        check_rails();
    }
    complete_placement();
    for (const Degraded& one : degraded) degrade(one);
    go_around_failed();
}

// Each node of the machine has one number, and each of its links one name, whether the job is on it or not.
void Wiring::complete_placement() {
    if (nodes_.empty()) return;
    if (kinds_.size() > 1) {
        throw InputError(
            fmt::format("{}: machine '{}' has nodes of several kinds: a job on it can only be placed "
                        "contiguously",
                        machine_.origin, machine_.name));
    }
    const auto [least, most] = std::ranges::minmax(nodes_);
    require(least >= 0 && most < node_count(machine_), "a job on nodes of the machine");
    std::vector<bool> taken(static_cast<std::size_t>(node_count(machine_)));
    for (const std::int64_t node : nodes_) taken[static_cast<std::size_t>(node)] = true;
    for (std::int64_t node = 0; node < node_count(machine_); ++node) {
        if (!taken[static_cast<std::size_t>(node)]) nodes_.push_back(node);
    }
}

void Wiring::check_rails() const {
    if (rails_ == FatTree::Rails::none) return;
    for (const Kind& kind : kinds_) {
        if (kind.paths.nics() == kinds_.front().paths.nics()) continue;
        throw InputError(fmt::format(
            "{}: machine '{}', fabric fat tree: rails need as many network cards in every kind of node, not {} and {}",
            machine_.origin, machine_.name, kinds_.front().paths.nics(), kind.paths.nics()));
    }
}

void Wiring::degrade(const Degraded& degraded) {
    if (!(degraded.share >= 0 && degraded.share <= 1)) {
        throw InputError(fmt::format("degraded link '{}': {} of its bandwidth is not from 0 (it has failed) to 1",
                                     degraded.link, degraded.share));
    }
    bool found = false;
    for (std::int64_t id = 0; id < link_count(); ++id) {
        if (!matches(sound_link(id).name, degraded.link)) continue;
        shares_[id] = degraded.share;
        found = true;
    }
    const bool of_choice = adaptive() != nullptr && std::ranges::any_of(shares_, [&](const auto& share) {
                               return between_switches(share.first);
                           });
    if (of_choice) {
        throw InputError(
            fmt::format("machine '{}': link '{}' lies between switches that route adaptively: it has no "
                        "share of its own; degrade links of nodes",
                        machine_.name, degraded.link));
    }
    if (found) return;
    throw InputError(
        fmt::format("machine '{}' has no link '{}'; predict --links --format json lists names, * is any text",
                    machine_.name, degraded.link));
}

Forwards Wiring::forwards() const {
    return is_nccl_since(machine_.collectives, passes_neighbours) ? Forwards::neighbours : Forwards::bridges;
}

void Wiring::add_kind(const NodeKind& kind) {
    Kind next{.classes = {},
              .paths = NodePaths{kind, rate(machine_.inside, stretch_inside_), stretch_inside_, forwards()}};
    if (next.paths.nics() == 0 && node_count(machine_) > 1) {
        throw InputError(fmt::format("{}: machine '{}': node '{}' has no NIC, so it reaches no other node",
                                     machine_.origin, machine_.name, kind.name));
    }
    if (!kinds_.empty()) {
        next.first_node = kinds_.back().end_node;
        next.first_device = kinds_.back().end_device;
    }
    next.devices = next.paths.devices();
    next.nic_links = 2 * static_cast<std::int64_t>(kind.links.size());
    next.links = next.nic_links + 2 * std::int64_t{next.paths.nics()};
    next.end_node = next.first_node + kind.count;
    next.end_device = next.first_device + kind.count * next.devices;
    next.first_link = first_switch_link_;
    for (const Vertex& vertex : kind.vertices) {
        if (vertex.kind == VertexKind::device) next.classes.push_back(vertex.device_class);
    }
    for (int d = 0; next.paths.nics() > 0 && d < next.paths.devices(); ++d) {
        next.turns = std::lcm(next.turns, static_cast<std::int64_t>(next.paths.out(d).size()));
        next.turns = std::lcm(next.turns, static_cast<std::int64_t>(next.paths.in(d).size()));
    }
    first_switch_link_ += kind.count * next.links;
    kinds_.push_back(std::move(next));
}

Wiring::Place Wiring::place(std::int64_t device) const {
    const Kind* kind = kinds_.data();
    const Kind* const end = kind + kinds_.size();
    while (kind != end && device >= kind->end_device) ++kind;
    require(device >= 0 && kind != end, "a device of the machine");
    const std::int64_t local = device - kind->first_device;
    const std::int64_t node = local / kind->devices;
    return {kind, kind->first_node + node, kind->first_link + node * kind->links,
            static_cast<int>(local - node * kind->devices)};
}

const DeviceClass& Wiring::device_class(std::int64_t device) const {
    const Place at = place(device);
    return machine_.classes.at(static_cast<std::size_t>(at.kind->classes[static_cast<std::size_t>(at.device)]));
}

std::int64_t Wiring::node_mates(std::int64_t device, std::int64_t end) const {
    const Place at = place(device);
    return std::min(at.kind->devices, end - (device - at.device));
}

Seconds Wiring::route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops) const {
    const std::size_t first = hops.size();
    const Seconds latency = sound_route(from, to, hops, true);
    slow_degraded(std::span{hops}.subspan(first));
    return latency;
}

void Wiring::slow_degraded(std::span<Hop> hops) const {
    if (shares_.empty()) return;
    for (Hop& hop : hops) {
        const auto share = shares_.find(hop.link);
        if (share != shares_.end()) hop.cost = hop.cost / share->second;
    }
}

Seconds Wiring::limiting_route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops) const {
    const bool all = !shares_.empty() || !switches_never_limit_;
    return all ? route(from, to, hops) : sound_route(from, to, hops, false);
}

std::int64_t Wiring::likeness(std::int64_t from_node, std::int64_t to_node) const {
    if (from_node == to_node) return 0;
    const std::int64_t turns = kinds_.front().turns;
    const int passed =
        std::visit([&](const auto& s) { return s.passed({placed(from_node)}, {placed(to_node)}); }, switches_);
    return (passed * turns + from_node % turns) * turns + to_node % turns;
}

Seconds Wiring::sound_route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops, bool with_switches) const {
    const Place a = place(from);
    const Place b = place(to);
    const auto append = [&](const LocalPath& path, std::int64_t first_link) {
        for (const Hop& hop : path.hops) hops.push_back({first_link + hop.link, hop.cost});
    };
    if (a.node == b.node) {
        const LocalPath& path = paths_of(a).between(a.device, b.device);
        append(path, a.first_link);
        return path.latency + overhead_inside_;
    }
    const int neighbour = relay(a, b);
    if (neighbour >= 0) append(paths_of(a).between(a.device, neighbour), a.first_link);
    const Seconds before_card = neighbour >= 0 ? paths_of(a).between(a.device, neighbour).latency : Seconds{};
    const auto outs = paths_of(a).out(neighbour >= 0 ? neighbour : a.device);
    const NicPath& out = outs[outs.size() == 1 ? 0 : static_cast<std::size_t>(b.node) % outs.size()];
    const NicPath& in = way_in(b, a.node, out.nic);
    append(out.path, a.first_link);
    hops.push_back({a.first_link + a.kind->nic_links + 2 * std::int64_t{out.nic}, nic_cost_});
    const std::size_t before = hops.size();
    const End here{placed(a.node), out.nic}, there{placed(b.node), in.nic};
    const int passed = with_switches ? cross(here, there, hops)
                                     : std::visit([&](const auto& s) { return s.passed(here, there); }, switches_);
    for (std::size_t i = before; i < hops.size(); ++i) hops[i].link += first_switch_link_;
    hops.push_back({b.first_link + b.kind->nic_links + 2 * std::int64_t{in.nic} + 1, nic_cost_});
    append(in.path, b.first_link);
    const Seconds fabric = machine_.fabric.latency.value + machine_.fabric.hop_latency.value * (passed - 1);
    return before_card + out.path.latency + fabric * stretch_across_ + in.path.latency + overhead_across_;
}

int Wiring::relay(const Place& from, const Place& to) const {
    if (!relays_) return -1;
    const NodePaths& here = paths_of(from);
    const auto ins = paths_of(to).in(to.device);
    const auto is_theirs = [&](const NicPath& path) {
        return std::ranges::find(ins, path.nic, &NicPath::nic) != ins.end();
    };
    if (std::ranges::any_of(here.out(from.device), is_theirs)) return -1;
    const NodeKind& kind = machine_.nodes[static_cast<std::size_t>(from.kind - kinds_.data())];
    for (int device = 0; device < here.devices(); ++device) {
        if (device == from.device || !std::ranges::any_of(here.out(device), is_theirs)) continue;
        const LocalPath& path = here.between(from.device, device);
        if (between_devices(kind, path) && !path.by_neighbour) return device;
    }
    return -1;
}

// Where cards hang on rails, by the same one: of the device's own if there is such, on separate rails by any.
const NicPath& Wiring::way_in(const Place& place, std::int64_t from_node, int nic) const {
    const auto ins = paths_of(place).in(place.device);
    if (rails_ != FatTree::Rails::none) {
        const auto same = std::ranges::find(ins, nic, &NicPath::nic);
        if (same != ins.end()) return *same;
    }
    if (rails_ == FatTree::Rails::separate) {
        const NicPath* way = paths_of(place).from_nic(nic, place.device);
        if (way != nullptr) return *way;
        throw InputError(
            fmt::format("machine '{}': no way leads from card {} of a node to device {}, and the fabric's "
                        "rails are separate",
                        machine_.name, nic, place.device));
    }
    return ins[ins.size() == 1 ? 0 : static_cast<std::size_t>(from_node) % ins.size()];
}

const AdaptiveSwitches* Wiring::adaptive() const {
    const auto* switches = std::get_if<AdaptiveSwitches>(&switches_);
    return switches != nullptr && switches->adaptive() ? switches : nullptr;
}

bool Wiring::spread(std::span<Hop> hops, std::span<const double> weights) const {
    if (adaptive() == nullptr) return false;
    adaptive()->spread(hops, first_switch_link_, weights);
    return true;
}

std::optional<AdaptiveSwitches::Ways> Wiring::ways(std::int64_t from, std::int64_t to) const {
    if (adaptive() == nullptr || !across(from, to)) return std::nullopt;
    AdaptiveSwitches::Ways ways = adaptive()->ways(placed(node_of(from)), placed(node_of(to)));
    if (ways.choices.empty()) return std::nullopt;
    for (Hop& hop : ways.hops) hop.link += first_switch_link_;
    for (AdaptiveSwitches::Choice& choice : ways.choices) choice.first += first_switch_link_;
    return ways;
}

Seconds Wiring::beyond(bool across, Bytes bytes, PerByte alone) const {
    const double stretch = across ? stretch_across_ : stretch_inside_;
    const Messaging& messaging = across ? machine_.across : machine_.inside;
    return beyond_wire(messaging, bytes, alone * bytes * (1 / stretch)) * stretch;
}

const SwitchSums& Wiring::switch_sums(std::int64_t device) const {
    return machine_.nodes[static_cast<std::size_t>(place(device).kind - kinds_.data())].sums;
}

Bandwidth Wiring::nominal_rate_inside(std::int64_t from, std::int64_t to) const {
    require(from != to && !across(from, to), "two devices of a node");
    const Place a = place(from);
    PerByte slowest;
    for (const Hop& hop : a.kind->paths.between(a.device, place(to).device).hops) slowest = std::max(slowest, hop.cost);
    return Bandwidth{1 / slowest.value} * (machine_.inside.fraction.value / inside_rate());
}

Bandwidth Wiring::direct(std::int64_t from, std::int64_t to) const {
    const Place a = place(from);
    const Place b = place(to);
    if (a.node != b.node || from == to) return {};
    const std::vector<Hop>& hops = paths_of(a).between(a.device, b.device).hops;
    return Bandwidth{hops.size() == 1 ? 1 / hops.front().cost.value : 0};
}

double Wiring::inside_rate() const { return rate(machine_.inside, stretch_inside_); }

Bandwidth Wiring::egress(std::int64_t device) const {
    const DeviceAt here = locate(machine_, device);
    Bandwidth sum;
    for (const NodeLink& link : machine_.nodes[static_cast<std::size_t>(here.kind)].links) {
        if (link.a == here.vertex || link.b == here.vertex) sum += link.bandwidth.value;
    }
    return sum * inside_rate();
}

Bandwidth Wiring::all_nics(std::int64_t node, std::int64_t way) const {
    if (!(nic_cost_ > PerByte{})) return {};  // the only node
    const auto kind = std::ranges::find_if(kinds_, [node](const Kind& k) { return node < k.end_node; });
    require(kind != kinds_.end(), "a node of the machine");
    const std::int64_t first = kind->first_link + (node - kind->first_node) * kind->links + kind->nic_links;
    double nics = 0;
    for (int nic = 0; nic < kind->paths.nics(); ++nic) {
        const auto share = shares_.find(first + 2 * nic + way);
        nics += share == shares_.end() ? 1 : share->second;
    }
    return Bandwidth{nics / nic_cost_.value};
}

void Wiring::from_top(std::int64_t node, bool down, std::vector<Hop>& hops) const {
    if (!(nic_cost_ > PerByte{})) return;
    const std::size_t first = hops.size();
    std::visit([&](const auto& s) { s.from_top(placed(node), down, hops); }, switches_);
    for (std::size_t i = first; i < hops.size(); ++i) hops[i].link += first_switch_link_;
    slow_degraded(std::span{hops}.subspan(first));
}

}  // namespace rehearse::sim
