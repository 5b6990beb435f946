// SPDX-License-Identifier: Apache-2.0
#include "search/wires.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::search {
namespace {

Mesh mesh_of(const Shape& shape) {
    const Axis data{"data", shape.data}, pipe{"pipe", shape.pipe}, tensor{"tensor", shape.tensor};
    if (shape.data_outside) return {{data, pipe, tensor}};
    return {{pipe, data, tensor}};
}

}  // namespace

std::vector<std::string> all_reduces() {
    return {"ring", "halving", "doubletree", "hierarchical(ring,ring)", "hierarchical(ring,halving)"};
}

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

Line Wires::measured(Times& times, CollectiveKind kind, const Shape& shape, const char* axis,
                     const std::string& algorithm) {
    const auto [known, fresh] = lines_.try_emplace({shape, kind, axis, algorithm});
    if (!fresh) return known->second;
    if (!times.of || times.shape != shape) times.of.emplace(mesh_of(shape), part_for(devices(shape)));
    times.shape = shape;
    sim::Call call{kind, axis_index(mesh_of(shape), axis), 0, DataType::f32, parse_algorithm(algorithm, kind)};
    const auto seconds = [&](std::int64_t elements) {
        call.elements = elements;
        return times.of->time(call).value;
    };
    // Both divide evenly among powers of two, and are large enough for thousands of ranks.
    constexpr std::int64_t small = 1 << 16, large = 1 << 23;
    const double short_s = seconds(small), long_s = seconds(large);
    const double rate = (long_s - short_s) / (4.0 * (large - small));
    return known->second = {std::max(0.0, short_s - rate * 4.0 * small), rate};
}

const Wires::Sum& Wires::sum(const Shape& shape, double bytes) {
    const auto [known, fresh] = sums_.try_emplace(shape);
    if (!fresh) return known->second;
    for (const std::string& algorithm : all_reduces()) {
        try {
            const Line line = measured(sum_times_, CollectiveKind::all_reduce, shape, "data", algorithm);
            const bool better = known->second.algorithm.empty() || line.at(bytes) < known->second.line.at(bytes);
            if (better) known->second = {line, algorithm};
        } catch (const InputError&) {  // it cannot serve these ranks
        }
    }
    return known->second;
}

Line Wires::piecewise(CollectiveKind kind, const Shape& shape) {
    return measured(sum_times_, kind, shape, "data", "ring");
}

Line Wires::hop(const Shape& shape) {
    // A broadcast to one other rank is one message. Where pipe lies outside, all its next neighbours send at once.
    Shape pair = shape;
    pair.pipe = 2;
    if (pair.data_outside) pair.data = 1;
    return measured(hop_times_, CollectiveKind::broadcast, pair, "pipe", "tree");
}

}  // namespace rehearse::search
