// SPDX-License-Identifier: Apache-2.0
#include "search/costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/precision.hpp"
#include "core/prices.hpp"
#include "schedule/blocks.hpp"
#include "schedule/memory.hpp"
#include "search/wires.hpp"

namespace rehearse::search {
namespace {

using schedule::Recompute;

Schedule one_sample(const Network& network, const Machine& machine, schedule::Job job, std::int64_t tensor,
                    bool sequence, Recompute recompute) {
    schedule::Plan plan = schedule::parse_plan("data=1");
    if (tensor > 1) plan.mesh.axes.push_back({"tensor", tensor});
    plan.sequence = sequence;
    plan.recompute = recompute;
    job.devices = tensor;
    job.batch_per_device = 1;
    job.global_batch.reset();
    return schedule::make_schedule(network, machine, plan, job);
}

/// [0, v0, v0 + v1, ...].
std::vector<double> running(const std::vector<double>& values) {
    std::vector<double> sums(values.size() + 1);
    std::partial_sum(values.begin(), values.end(), sums.begin() + 1);
    return sums;
}

/// Where each piece ends when none may cost more than `most`; empty: too many pieces.
std::vector<std::size_t> cut_below(const std::vector<double>& costs, double most, std::size_t pieces) {
    std::vector<std::size_t> ends;
    for (std::size_t begin = 0; begin + 1 < costs.size();) {
        if (ends.size() == pieces) return {};
        const auto after =
            std::upper_bound(costs.begin() + static_cast<std::ptrdiff_t>(begin), costs.end(), costs[begin] + most);
        const auto end = static_cast<std::size_t>(after - costs.begin()) - 1;
        if (end == begin) return {};  // one layer alone costs more
        ends.push_back(end);
        begin = end;
    }
    return ends;
}

/// The costliest piece as cheap as can be, by bisection of its cost; at least one layer a piece.
std::vector<std::size_t> cut(const std::vector<double>& costs, std::size_t pieces) {
    double low = costs.back() / static_cast<double>(pieces), high = costs.back();
    std::vector<std::size_t> best = cut_below(costs, high, pieces);
    for (int i = 0; i < 30 && high > low * (1 + 1e-4); ++i) {
        const double middle = (low + high) / 2;
        std::vector<std::size_t> ends = cut_below(costs, middle, pieces);
        if (ends.empty()) {
            low = middle;
            continue;
        }
        high = middle;
        best = std::move(ends);
    }
    // Room is left where costs are few: the last pieces give way, a layer each.
    while (!best.empty() && best.size() < pieces) best.push_back(costs.size() - 1);
    for (std::size_t i = best.size(); i-- > 0;) {
        const std::size_t most = costs.size() - 1 - (best.size() - 1 - i);
        best[i] = std::min(best[i], most);
    }
    return best;
}

}  // namespace

Group::Group(const Network& network, const Machine& machine, schedule::Job job, std::int64_t tensor, bool sequence,
             Recompute recompute)
    : machine_(machine),
      schedule_(one_sample(network, machine, job, tensor, sequence, recompute)),
      recompute_(recompute),
      use_(schedule::memory_use(schedule_, schedule_.classes[0])) {
    Known known{std::vector<bool>(schedule_.classes[0].part.network.layers.size()), {}};
    for (const Step& step : schedule_.classes[0].steps) add(step, known);
}

void Group::add(const Step& step, Known& known) {
    const auto first = [&](std::size_t layer, Pass pass) {  // not a forward pass done again
        const bool forward = pass == Pass::forward && !known.forward[layer];
        if (forward) known.forward[layer] = true;
        return forward;
    };
    if (const auto* compute = std::get_if<Compute>(&step.action)) {
        const auto layer = static_cast<std::size_t>(compute->layer);
        // Few are different, and those of blocks come in the same order again.
        const auto same = std::ranges::find(problems_, compute->problem);
        const auto which = static_cast<std::size_t>(same - problems_.begin());
        if (same == problems_.end()) problems_.push_back(compute->problem);
        computes_.push_back({layer, which, first(layer, compute->problem.pass)});
    } else if (const auto* sum = std::get_if<Communicate>(&step.action); sum != nullptr && sum->layer >= 0) {
        const auto layer = static_cast<std::size_t>(sum->layer);
        const auto [at, fresh] = known.sums.try_emplace({sum->kind, sum->elements, sum->type}, sums_.size());
        if (fresh) sums_.push_back(*sum);
        communications_.push_back({layer, at->second, first(layer, sum->pass)});
    } else if (const auto* update = std::get_if<Update>(&step.action)) {
        update_s_ += price(update->problem, rehearse::class_of(machine_, 0)).time.value;
    }
}

/// What each layer keeps of one sample until its backward pass.
std::vector<double> Group::held(const std::vector<double>& outputs) const {
    std::vector<double> held(outputs.size());
    if (recompute_ == Recompute::all) return held;
    if (recompute_ == Recompute::blocks) {
        const Network& network = schedule_.classes[0].part.network;
        const auto all = static_cast<int>(network.layers.size());
        for (const schedule::Chunk& segment : schedule::segments(network, {0, all})) {
            const auto begin = static_cast<std::size_t>(segment.begin);
            if (begin > 0) held[begin] = outputs[begin - 1];
        }
        return held;
    }
    const double share = use_.activations.value / std::max(1.0, std::accumulate(outputs.begin(), outputs.end(), 0.0));
    std::ranges::transform(outputs, held.begin(), [&](double bytes) { return bytes * share; });
    return held;
}

LayerCosts Group::costs(std::int64_t micro_batch) {
    const Network& network = schedule_.classes[0].part.network;
    const auto samples = static_cast<double>(micro_batch);
    std::vector<double> computed, summed;  // seconds of each problem and sum
    for (Problem problem : problems_) {
        problem.batch *= micro_batch;
        computed.push_back(price(problem, rehearse::class_of(machine_, 0)).time.value);
    }
    if (!sums_.empty() && !times_) {
        part_ = part_of(machine_, ranks(schedule_.mesh));
        times_.emplace(schedule_.mesh, *part_);
    }
    for (Communicate sum : sums_) {
        sum.elements *= micro_batch;
        summed.push_back(times_->time(sim::call_of(sum)).value);
    }
    std::vector<double> forward(network.layers.size()), backward(forward.size());
    for (const Doing& each : computes_) (each.forward ? forward : backward)[each.layer] += computed[each.what];
    for (const Doing& each : communications_) (each.forward ? forward : backward)[each.layer] += summed[each.what];

    std::vector<double> weights, outputs;  // outputs of one sample
    const double size = size_of(compute_type(schedule_.precision)).value;
    for (const Layer& layer : network.layers) {
        weights.push_back(static_cast<double>(parameters(layer.op)));
        outputs.push_back(size * static_cast<double>(elements(layer.output)));
    }
    const auto all_samples = [&](std::vector<double> bytes) {
        for (double& each : bytes) each *= samples;
        return running(bytes);
    };
    LayerCosts costs{running(forward), running(backward), running(weights), all_samples(held(outputs)),
                     all_samples(outputs)};
    costs.passing_bytes = samples * use_.activation_gradients.value;
    if (recompute_ == Recompute::blocks) {
        costs.passing_bytes += std::max(0.0, samples * use_.activations.value - costs.held_bytes.back());
    }
    costs.whole_stage = recompute_ == Recompute::all;
    costs.update_s = update_s_ / std::max(1.0, costs.weights.back());
    return costs;
}

std::vector<Stage> stages_of(const LayerCosts& costs, std::int64_t stages, int chunks) {
    const auto pieces = static_cast<std::size_t>(stages * chunks);
    if (pieces + 1 > costs.forward_s.size()) return {};
    std::vector<double> both(costs.forward_s);
    std::ranges::transform(both, costs.backward_s, both.begin(), std::plus{});
    std::vector<Stage> made(static_cast<std::size_t>(stages));
    std::size_t begin = 0;
    std::size_t piece = 0;
    for (const std::size_t end : cut(both, pieces)) {
        Stage& stage = made[piece++ % made.size()];
        const auto between = [&](const std::vector<double>& sums) { return sums[end] - sums[begin]; };
        stage.forward_s += between(costs.forward_s);
        stage.backward_s += between(costs.backward_s);
        stage.weights += between(costs.weights);
        stage.held_bytes += between(costs.held_bytes);
        stage.passing_bytes = std::max(stage.passing_bytes, costs.passing_bytes);
        stage.handed_bytes = costs.output_bytes[end] - costs.output_bytes[end - 1];
        if (costs.whole_stage && begin > 0)
            stage.held_bytes += costs.output_bytes[begin] - costs.output_bytes[begin - 1];
        if (costs.whole_stage) {
            stage.passing_bytes = std::max(stage.passing_bytes, costs.passing_bytes + between(costs.output_bytes));
        }
        begin = end;
    }
    return made;
}

}  // namespace rehearse::search
