// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_prices.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "calibrate/collective_times.hpp"
#include "core/error.hpp"

#if REHEARSE_HAS_SIM
#include "predict/conditions.hpp"
#include "schedule/mesh.hpp"
#include "sim/collective/price.hpp"
#endif

namespace rehearse::cli {

#if REHEARSE_HAS_SIM

namespace {

std::int64_t elements_of(Bytes bytes) {
    return std::max<std::int64_t>(1, std::llround(bytes / size_of(DataType::f32)));
}

Seconds collective(const Machine& machine, CollectiveKind kind, std::int64_t ranks, Bytes bytes,
                   const Algorithm& algorithm) {
    const sim::Call call{.kind = kind, .axis = 0, .elements = elements_of(bytes), .algorithm = algorithm};
    return sim::collective_time(call, Mesh{{{"data", ranks}}}, machine);
}

// Each of n ranks sends one message to the next one: a round of an all-gather by one ring.
Seconds message(Machine machine, std::int64_t ranks, Bytes size) {
    machine.inside.one_ring = true;
    const auto n = static_cast<double>(ranks);
    return collective(machine, CollectiveKind::all_gather, ranks, size * n, Algorithm{.name = "ring"}) * (1 / (n - 1));
}

// As plans sum by default what is too long for latencies to tell: the way must not change with the prices that are
// fitted.
Algorithm of_long_sums(const Machine& machine, const Mesh& mesh) {
    return schedule::settled(schedule::choose_all_reduce({}, machine, mesh, 0), machine, mesh, 0, Bytes{1e18});
}

Machine with_ranks_on(Machine machine, std::int64_t each) {
    if (each == devices_per_node(machine.nodes.front())) return machine;
    return predict::with_devices_per_node(std::move(machine), each);
}

// What a plan makes of a collective by default; nothing of those that no plan has.
std::optional<std::pair<CollectiveKind, Algorithm>> as_planned(const Machine& machine,
                                                               const calibrate::CollectiveRow& row) {
    const Mesh mesh{{{"data", row.ranks}}};
    if (row.kind == "all_reduce") return std::pair(CollectiveKind::all_reduce, of_long_sums(machine, mesh));
    if (row.kind == "all_to_all") return std::pair(CollectiveKind::all_to_all, Algorithm{.name = "pairwise"});
    const Algorithm halves = schedule::choose_halves({}, machine, mesh, 0);
    if (row.kind == "all_gather") return std::pair(CollectiveKind::all_gather, halves);
    if (row.kind == "reduce_scatter") return std::pair(CollectiveKind::reduce_scatter, halves);
    return std::nullopt;
}

}  // namespace

std::string algorithm_of(const Machine& machine, const calibrate::CollectiveRow& row) {
    const auto planned = as_planned(with_ranks_on(machine, row.ranks / row.hosts), row);
    return planned ? to_string(planned->second) : "messages";
}

Seconds predicted_time(const Machine& whole, const calibrate::CollectiveRow& row) {
    const Machine machine = with_ranks_on(whole, row.ranks / row.hosts);
    if (const auto planned = as_planned(machine, row))
        return collective(machine, planned->first, row.ranks, row.bytes, planned->second);
    if (row.kind == "send_recv") return message(machine, row.ranks, row.bytes);
    const calibrate::RingRounds rounds = *calibrate::ring_rounds(row.kind, row.ranks);
    const Machine pair = with_ranks_on(whole, row.hosts > 1 ? 1 : 2);
    return message(pair, 2, row.bytes * (1 / rounds.pieces)) * rounds.rounds;
}

#else

std::string algorithm_of(const Machine&, const calibrate::CollectiveRow&) { return ""; }

Seconds predicted_time(const Machine&, const calibrate::CollectiveRow&) {
    throw InputError("messages are fitted by the simulator, which this build is without: build it with SimGrid");
}

#endif

}  // namespace rehearse::cli
