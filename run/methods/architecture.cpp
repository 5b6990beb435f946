// SPDX-License-Identifier: Apache-2.0
#include "run/methods/architecture.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/index.hpp"

namespace rehearse::run {

namespace {

std::span<const float> weights_of_layer(const Part& part, int layer, std::span<const float> weights) {
    std::size_t first = 0;
    for (const Bucket& bucket : part.buckets) {
        for (const int each : bucket.layers) {
            const std::size_t count = at(parameters(part.network.layers[at(each)].op));
            if (each == layer) return weights.subspan(first, count);
            first += count;
        }
    }
    return {};
}

std::vector<double> softmax(std::span<const float> row) {
    const double largest = *std::ranges::max_element(row);
    std::vector<double> shares;
    double sum = 0;
    for (const float value : row) sum += shares.emplace_back(std::exp(value - largest));
    for (double& share : shares) share /= sum;
    return shares;
}

/// "cell0.node0.from1.skip.row" of "cell0.node0.from1" is "skip".
std::string name_within(std::string name, std::string_view of) {
    if (name.starts_with(of)) name.erase(0, of.size() + 1);
    constexpr std::string_view row = ".row";
    if (name.ends_with(row)) name.erase(name.size() - row.size());
    return name;
}

}  // namespace

std::vector<MixedOperators> mixed_operators(const RankClass& rank_class, std::span<const float> weights) {
    const std::vector<Layer>& layers = rank_class.part.network.layers;
    const auto input = [&](const Layer& layer, std::size_t i) -> const Layer& { return layers[at(layer.inputs[i])]; };
    std::vector<MixedOperators> found;
    std::set<std::pair<int, std::int64_t>> seen;  // tables and their rows
    for (const Layer& layer : layers) {
        if (!std::holds_alternative<BatchedMatMul>(layer.op) || layer.inputs.size() != 2) continue;
        const Layer &shares = input(layer, 0), &stack = input(layer, 1);
        const auto* row = std::get_if<Rearrangement>(&shares.op);
        const auto* joined = std::get_if<Rearrangement>(&stack.op);
        if (row == nullptr || row->kind != "slice" || joined == nullptr || joined->kind != "join") continue;
        const Layer& softmaxes = input(shares, 0);
        const auto* all = std::get_if<SoftmaxAlong>(&softmaxes.op);
        if (all == nullptr || all->shape.size() != 2 || all->axis != 1) continue;
        const int table = softmaxes.inputs.front();
        if (!std::holds_alternative<Parameter>(layers[at(table)].op)) continue;
        if (!seen.insert({table, row->numbers[0]}).second) continue;
        const std::int64_t columns = all->shape[1], first = row->numbers[1];
        const std::vector<double> of_row = softmax(
            weights_of_layer(rank_class.part, table, weights).subspan(at(row->numbers[0] * columns), at(columns)));
        MixedOperators mixed{layer.name, {}, {}};
        const std::string_view edge = std::string_view{layer.name}.substr(0, layer.name.rfind('.'));
        for (std::size_t i = 0; i < stack.inputs.size(); ++i) {
            mixed.operators.push_back(name_within(input(stack, i).name, edge));
            mixed.shares.push_back(of_row[at(first) + i]);
        }
        found.push_back(std::move(mixed));
    }
    return found;
}

}  // namespace rehearse::run
