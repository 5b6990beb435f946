// SPDX-License-Identifier: Apache-2.0
#include "schedule/cuts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/blocks.hpp"
#include "schedule/costs.hpp"

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

}  // namespace

std::vector<int> cuts_of(const Network& network, const Part& part, const Plan& plan, const Schedule& schedule,
                         const Machine& machine) {
    const int stages = rehearse::stages(schedule);
    if (stages == 1 && plan.chunks == 1) return {};
    try {
        if (!plan.cuts.empty()) return ends_given(network, part, plan);
        return plan.cut_by_blocks ? even_blocks(part.network, stages * plan.chunks)
                                  : balance(costs_of_pieces(part, plan.chunks, schedule, machine));
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': network '{}': {}", plan.text, network.name, error.what()));
    }
}

}  // namespace rehearse::schedule
