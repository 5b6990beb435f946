// SPDX-License-Identifier: Apache-2.0
#include "search/wires.hpp"

#include <algorithm>
#include <limits>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::search {
namespace {

// Elements. Both divide evenly among powers of two, and are large enough for thousands of ranks.
constexpr std::int64_t small = 1 << 16, large = 1 << 23;

Mesh mesh_of(const Shape& shape) {
    const Axis data{"data", shape.data}, pipe{"pipe", shape.pipe}, tensor{"tensor", shape.tensor};
    if (shape.data_outside) return {{data, pipe, tensor}};
    return {{pipe, data, tensor}};
}

/// With the library of collectives, which is one of GPUs.
std::vector<std::string> with_library(std::vector<std::string> names, const Machine& machine) {
    if (machine.collectives.library && !class_of(machine, 0).host) names.push_back(machine.collectives.library->name);
    return names;
}

}  // namespace

std::vector<std::string> all_reduces(const Machine& machine) {
    return with_library(
        {"ring", "rings", "halving", "doubletree", "hierarchical(ring,ring)", "hierarchical(ring,halving)"}, machine);
}

std::vector<std::string> all_halves(const Machine& machine) { return with_library({"", "ring", "rings"}, machine); }

Machine part_of(const Machine& machine, std::int64_t devices) {
    Machine part = machine;
    std::int64_t left = locate(machine, devices - 1).node + 1;
    for (NodeKind& kind : part.nodes) {
        kind.count = std::min(kind.count, left);
        left -= kind.count;
    }
    std::erase_if(part.nodes, [](const NodeKind& kind) { return kind.count == 0; });
    return part;
}

const Machine& Wires::part_for(std::int64_t devices) {
    const auto [known, fresh] = parts_.try_emplace(locate(machine_, devices - 1).node + 1);
    if (fresh) known->second = part_of(machine_, devices);
    return known->second;
}

double Wires::seconds(Times& times, CollectiveKind kind, const Shape& shape, const char* axis,
                      const std::string& algorithm, std::int64_t elements) {
    const Mesh mesh = mesh_of(shape);
    if (!times.of || times.shape != shape) times.of.emplace(mesh, part_for(devices(shape)));
    times.shape = shape;
    return times.of->time({kind, axis_index(mesh, axis), elements, DataType::f32, parse_algorithm(algorithm, kind)})
        .value;
}

Line Wires::measured(Times& times, CollectiveKind kind, const Shape& shape, const char* axis,
                     const std::string& algorithm) {
    const auto [known, fresh] = lines_.try_emplace({shape, kind, axis, algorithm});
    if (!fresh) return known->second;
    const double short_s = seconds(times, kind, shape, axis, algorithm, small);
    const double long_s = seconds(times, kind, shape, axis, algorithm, large);
    const double rate = (long_s - short_s) / (4.0 * (large - small));
    return known->second = {std::max(0.0, short_s - rate * 4.0 * small), rate};
}

const Wires::Sum& Wires::sum(const Shape& shape) {
    const auto [known, fresh] = sums_.try_emplace(shape);
    if (!fresh) return known->second;
    std::vector<std::string> tried = all_reduces(machine_);
    const Mesh mesh = mesh_of(shape);
    if (schedule::sums_in_switches(machine_, mesh, axis_index(mesh, "data"))) tried.emplace_back("direct");
    double least = 0;
    for (const std::string& algorithm : tried) {
        try {
            const double taken = seconds(sum_times_, CollectiveKind::all_reduce, shape, "data", algorithm, large);
            if (!known->second.algorithm.empty() && taken >= least) continue;
            least = taken;
            known->second.algorithm = algorithm;
        } catch (const InputError&) {  // it cannot serve these ranks
        }
    }
    if (known->second.algorithm.empty()) return known->second;
    known->second.line = measured(sum_times_, CollectiveKind::all_reduce, shape, "data", known->second.algorithm);
    return known->second;
}

Line Wires::piecewise(CollectiveKind kind, const Shape& shape, const std::string& all_reduce) {
    return measured(sum_times_, kind, shape, "data", half_of(shape, all_reduce));
}

std::string Wires::half_of(const Shape& shape, const std::string& all_reduce) const {
    const Mesh mesh = mesh_of(shape);
    std::optional<Algorithm> sums;
    if (!all_reduce.empty()) sums = parse_algorithm(all_reduce);
    return schedule::choose_halves(sums, machine_, mesh, axis_index(mesh, "data")).name;
}

const Wires::Halves& Wires::halves(const Shape& shape) {
    const auto [known, fresh] = halves_.try_emplace(shape);
    if (!fresh) return known->second;
    Halves& best = known->second;
    double least = std::numeric_limits<double>::infinity();
    for (const std::string& all_reduce : all_halves(machine_)) {
        const auto takes = [&, half = half_of(shape, all_reduce)](CollectiveKind kind) {
            return seconds(sum_times_, kind, shape, "data", half, large);
        };
        try {
            const double taken = takes(CollectiveKind::reduce_scatter) + takes(CollectiveKind::all_gather);
            if (taken >= least) continue;
            least = taken;
            best.algorithm = all_reduce;
        } catch (const InputError&) {  // it cannot serve these ranks
        }
    }
    best.scatter = piecewise(CollectiveKind::reduce_scatter, shape, best.algorithm);
    best.gather = piecewise(CollectiveKind::all_gather, shape, best.algorithm);
    return best;
}

std::vector<Line> Wires::hops(const Shape& shape) {
    const std::int64_t stage = (shape.data_outside ? 1 : shape.data) * shape.tensor;
    const std::int64_t node = devices_per_node(machine_.nodes.front());
    // A broadcast to one other rank is one message. Where pipe lies outside, all its next neighbours send at once.
    Shape pair = shape;
    pair.pipe = 2;
    if (pair.data_outside) pair.data = 1;
    const Line one = measured(hop_times_, CollectiveKind::broadcast, pair, "pipe", "tree");
    std::vector<Line> hops(static_cast<std::size_t>(shape.pipe), one);
    if (stage >= node || stage * shape.pipe <= node) return hops;
    // Some neighbours are in a node, some are not: these send all at once, as in a round of a ring.
    Shape chain = shape;
    if (chain.data_outside) chain.data = 1;
    const Line ring = measured(hop_times_, CollectiveKind::all_gather, chain, "pipe", "ring");
    const auto rounds = static_cast<double>(shape.pipe - 1);
    const Line across{ring.start_s / rounds, ring.s_per_byte * (rounds + 1) / rounds};
    const bool is_pair_within = 2 * stage <= node;
    const std::int64_t chains = shape.data_outside ? shape.data : 1;
    for (std::int64_t rank = 0; rank < chains * shape.pipe * stage; ++rank) {
        const std::int64_t s = rank / stage % shape.pipe;
        const std::int64_t next = s + 1 < shape.pipe ? rank + stage : rank - s * stage;
        if (!is_pair_within || rank / node != next / node) hops[static_cast<std::size_t>(s)] = across;
    }
    return hops;
}

}  // namespace rehearse::search
