// SPDX-License-Identifier: Apache-2.0
#include "schedule/cuts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"
#include "schedule/axes/pipe_time.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/blocks.hpp"
#include "schedule/costs.hpp"
#include "schedule/rank_classes.hpp"

namespace rehearse::schedule {

namespace {

bool is_number(std::string_view word) {
    return std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

/// How many layers of the network lie before a cut: it is written as this number, or as the name of the last of them.
int layers_before(const Network& network, std::string_view word) {
    const auto all = static_cast<int>(network.layers.size());
    if (is_number(word)) {
        const std::int64_t count = parse_int(word, "cut");
        if (count >= 1 && count < all) return static_cast<int>(count);
        throw InputError(
            fmt::format("cut after {} layers: it has {}, so that a stage ends after 1 to {}", word, all, all - 1));
    }
    const auto found = std::ranges::find(network.layers, word, &Layer::name);
    if (found == network.layers.end()) {
        std::vector<std::string_view> names;
        for (const Layer& layer : network.layers) names.push_back(layer.name);
        throw InputError(fmt::format("cut after '{}': no layer has this name{}; 'rehearse models {}' lists them", word,
                                     did_you_mean(word, names), network.name));
    }
    if (std::next(found) == network.layers.end()) {
        throw InputError(
            fmt::format("cut after '{}': it is the last layer, so that nothing is left for the next stage", word));
    }
    return static_cast<int>(found - network.layers.begin()) + 1;
}

/// Whether it completes what layers before it gave, so that it belongs to them.
bool completes(const Layer& layer) {
    const auto* op = std::get_if<Communication>(&layer.op);
    return op != nullptr && (op->movement == Movement::sum || op->movement == Movement::reduce_scatter);
}

/// Of a part, the layers that come of the first `count` of the network, with the sums that complete them.
int end_in(const Part& part, int count) {
    const auto all = static_cast<int>(part.network.layers.size());
    int end = all;
    while (end > 0 && (part.origins[at(end - 1)].layer < 0 || part.origins[at(end - 1)].layer >= count)) --end;
    while (end < all && part.origins[at(end)].layer < 0 && completes(part.network.layers[at(end)])) ++end;
    return end;
}

std::vector<int> ends_given(const Network& network, const Part& part, const Plan& plan) {
    std::vector<int> ends;
    int before = 0;
    for (std::size_t i = 0; i < plan.cuts.size(); ++i) {
        const int count = layers_before(network, plan.cuts[i]);
        if (count <= before) {
            throw InputError(fmt::format(
                "cut={}: {} comes no later than {} ({} and {} layers): write them in the order of the network",
                fmt::join(plan.cuts, "+"), plan.cuts[i], plan.cuts[i - 1], count, before));
        }
        before = count;
        const int end = end_in(part, count);
        if (end <= (ends.empty() ? 0 : ends.back()) || end >= static_cast<int>(part.network.layers.size())) {
            throw InputError(fmt::format("cut={}: the ranks of a stage have no layer up to {}, or none after it",
                                         fmt::join(plan.cuts, "+"), plan.cuts[i]));
        }
        ends.push_back(end);
    }
    ends.push_back(static_cast<int>(part.network.layers.size()));
    return ends;
}

std::vector<int> ends_by_prices(const Part& part, const Plan& plan, const Schedule& schedule, const Machine& machine) {
    const PieceCosts costs = costs_of_pieces(part, plan, schedule, machine);
    const auto working = std::ranges::count_if(costs.layers.front(), [](double cost) { return cost > 0; });
    if (working < std::ssize(costs.layers)) {
        throw InputError(fmt::format("{} layers that compute cannot make {} stages", working, costs.layers.size()));
    }
    return fastest_cut(part, costs, plan, schedule).value();
}

/// How long pieces that end there take with all micro-batches, or with as many as show at which pace they go on.
double time_of(std::span<const int> ends, const PieceCosts& costs, const Plan& plan, const Schedule& schedule) {
    constexpr int rounds = 8;
    const int stages = rehearse::stages(schedule);
    // A backward pass does twice the operations of a forward one, and that again where it makes outputs anew.
    const double backward = plan.recompute == Recompute::all || plan.recompute == Recompute::blocks ? 1 : 2.0 / 3;
    std::vector<PieceTimes> pieces;
    int begin = 0;
    for (std::size_t piece = 0; piece < ends.size(); ++piece) {
        const int end = ends[piece];
        const std::vector<double>& layers = costs.layers[piece];
        const double computed = std::accumulate(layers.begin() + begin, layers.begin() + end, 0.0);
        const bool last = piece + 1 == ends.size();
        pieces.push_back({.forward = computed / 3,
                          .backward = computed * backward,
                          .handed = last ? 0 : costs.handed[piece][at(end)],
                          .returned = last ? 0 : costs.returned[piece][at(end)]});
        begin = end;
    }
    const PipelineShape shape{
        .stages = stages, .micro_batches = std::min(schedule.micro_batches, rounds * stages), .chunks = plan.chunks};
    return pipeline_time(strategy_of(plan), shape, pieces);
}

std::optional<std::vector<int>> blocks_if_even(const Network& network, std::size_t pieces) {
    try {
        return even_blocks(network, static_cast<int>(pieces));
    } catch (const InputError&) {
        return std::nullopt;
    }
}

}  // namespace

std::optional<std::vector<int>> fastest_cut(const Part& part, const PieceCosts& costs, const Plan& plan,
                                            const Schedule& schedule, const std::optional<Room>& room) {
    // The first is all there is where nothing that is handed on takes time; others have to be faster to be taken.
    constexpr std::array goals{Goal{},
                               Goal{.beside = true},
                               Goal{.beside = true, .more = 0.1},
                               Goal{.beside = true, .more = 0.3},
                               Goal{.beside = true, .more = 1},
                               Goal{.added = 0.5},
                               Goal{.added = 1}};
    constexpr double faster = 1 - 1e-3;
    const std::size_t pieces = costs.layers.size();
    std::vector<std::vector<int>> cuts;
    const auto add = [&](std::optional<std::vector<int>> cut) {
        if (cut && std::ranges::find(cuts, *cut) == cuts.end()) cuts.push_back(*std::move(cut));
    };
    const Room own = room.value_or(endless_room(pieces, part.network.layers.size()));
    const auto free = [](const std::vector<double>& all) {
        return std::ranges::all_of(all, [](double c) { return c == 0; });
    };
    if (std::ranges::all_of(costs.handed, free) && std::ranges::all_of(costs.returned, free))
        return balance(costs, own);
    for (const Goal& goal : goals) add(balance(costs, own, goal));
    if (!room) add(blocks_if_even(part.network, pieces));
    if (cuts.size() < 2) return cuts.empty() ? std::nullopt : std::optional{cuts.front()};
    std::size_t best = 0;
    double least = time_of(cuts[0], costs, plan, schedule);
    for (std::size_t i = 1; i < cuts.size(); ++i) {
        const double takes = time_of(cuts[i], costs, plan, schedule);
        if (takes >= least * faster) continue;
        least = takes;
        best = i;
    }
    return cuts[best];
}

std::vector<int> cuts_of(const Network& network, const Part& part, const Plan& plan, const Schedule& schedule,
                         const Machine& machine) {
    const int stages = rehearse::stages(schedule);
    if (stages == 1 && plan.chunks == 1) return {};
    try {
        if (!plan.cuts.empty()) return ends_given(network, part, plan);
        return plan.cut_by_blocks ? even_blocks(part.network, stages * plan.chunks)
                                  : ends_by_prices(part, plan, schedule, machine);
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': network '{}': {}", plan.text, network.name, error.what()));
    }
}

}  // namespace rehearse::schedule
