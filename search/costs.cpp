// SPDX-License-Identifier: Apache-2.0
#include "search/costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "core/precision.hpp"
#include "core/ring_attention.hpp"
#include "prices/prices.hpp"
#include "schedule/blocks.hpp"
#include "schedule/memory.hpp"
#include "search/repeats.hpp"
#include "search/wires.hpp"

namespace rehearse::search {
namespace {

using schedule::Recompute;

/// Samples that experts get together.
std::int64_t routed_together(const Network& network) {
    std::int64_t group = 1;
    for (const Layer& layer : network.layers) group = std::max(group, routing_group(layer.op));
    return group;
}

Schedule one_unit(const Network& network, const Machine& machine, const MemoryHabits& habits, schedule::Job job,
                  const Sharing& sharing, std::int64_t samples) {
    schedule::Plan plan = schedule::parse_plan("data=1");
    plan.methods.edit<MemoryHabits>() = habits;
    const auto add = [&](const char* axis, std::int64_t size) {
        if (size == 1) return;
        plan.mesh.axes.push_back({axis, size});
        plan.text = fmt::format("{}={}", axis, size);  // what a refusal names: the ranks that share layers
    };
    add("tensor", sharing.tensor);
    add("expert", sharing.expert);
    add("context", sharing.context);
    plan.methods.edit<RingAttention>().on = sharing.ring;
    plan.sequence = sharing.sequence;
    plan.recompute = sharing.recompute;
    job.devices = sharing.tensor * sharing.expert * sharing.context;
    job.batch_per_device = samples;
    job.global_batch.reset();
    return schedule::make_schedule(network, machine, plan, job);
}

/// Where the piece that begins at a layer ends when it may not cost more than `most`; `begin` itself: one layer does.
std::size_t end_below(const std::vector<double>& costs, std::size_t begin, double most) {
    const auto after =
        std::upper_bound(costs.begin() + static_cast<std::ptrdiff_t>(begin), costs.end(), costs[begin] + most);
    return static_cast<std::size_t>(after - costs.begin()) - 1;
}

/// Where the first 0, 1, ..., `pieces` pieces end that cost at most `most` each and are as long as can be.
std::vector<std::size_t> reach(const std::vector<double>& costs, double most, std::size_t pieces) {
    std::vector<std::size_t> ends(pieces + 1);
    for (std::size_t i = 0; i < pieces; ++i) ends[i + 1] = end_below(costs, ends[i], most);
    return ends;
}

constexpr double precision = 1e-4;  // of the costliest piece's cost

/// The costliest piece as cheap as can be, at least one layer a piece. As schedule::balance cuts: the last piece is as
/// short as that leaves it, and so is, of the layers before it, the last but one. Costs are found by bisection.
std::vector<std::size_t> cut(const std::vector<double>& costs, std::size_t pieces) {
    std::size_t end = costs.size() - 1;
    std::vector<double> largest(end + 1);  // of one of the first layers
    for (std::size_t i = 0; i < end; ++i) largest[i + 1] = std::max(largest[i], costs[i + 1] - costs[i]);
    double high = std::min(costs[end] / static_cast<double>(pieces) + largest[end], costs[end]);
    std::vector<std::size_t> reached = reach(costs, high, pieces);
    for (double margin = 1e-12; reached[pieces] < end; margin *= 2) {  // of rounding
        high *= 1 + margin;
        reached = reach(costs, high, pieces);
    }
    std::vector<std::size_t> with_less = reach(costs, high * (1 - precision), pieces);
    std::vector<std::size_t> ends(pieces, end);
    for (std::size_t left = pieces; left > 1; --left) {
        double low = std::max(costs[end] / static_cast<double>(left), largest[end]);
        if (high > low * (1 + precision) && with_less[left] >= end) {
            while (high > low * (1 + precision)) {
                const double middle = (low + high) / 2;
                (reach(costs, middle, left)[left] >= end ? high : low) = middle;
            }
            reached = reach(costs, high, left);
            with_less = reach(costs, high * (1 - precision), left);
        }
        const auto first = costs.begin();
        const auto works = std::lower_bound(first, first + static_cast<std::ptrdiff_t>(end), costs[end]) - first;
        const std::size_t last = std::max<std::ptrdiff_t>(works - 1, 0);  // where a layer that costs something begins
        end = std::max(std::min(reached[left - 1], last), left - 1);
        ends[left - 2] = end;
    }
    return ends;
}

/// Buckets that the gradients of layers [begin, end) make, the last layer first. A layer is never cut: the one that
/// fills a bucket closes it, however much it adds (schedule/methods/buckets.cpp).
double buckets_of(const std::vector<double>& weights, std::size_t begin, std::size_t end, double full) {
    double buckets = 0, open = 0;
    for (std::size_t i = end; i-- > begin;) {
        const double own = weights[i + 1] - weights[i];
        if (own > 0 && open == 0) ++buckets;
        open += own;
        if (open >= full) open = 0;
    }
    return buckets;
}

}  // namespace

Group::Group(const Network& network, const Machine& machine, const predict::Framework& framework, schedule::Job job,
             const Sharing& sharing)
    : machine_(machine), framework_(framework), recompute_(sharing.recompute), unit_(routed_together(network)) {
    if (!make_of_few(network, job, sharing)) measure(network, job, sharing);
    find_sizes();
}

void Group::measure(const Network& network, const schedule::Job& job, const Sharing& sharing) {
    schedule_ = one_unit(network, machine_, framework_.memory, job, sharing, unit_);
    const schedule::MemoryUse use = schedule::memory_use(schedule_, schedule_.classes[0]);
    activations_ = use.activations.value;
    activation_gradients_ = use.activation_gradients.value;
    problems_.clear();
    sums_.clear();
    computes_.clear();
    balanced_.clear();
    communications_.clear();
    update_s_ = 0;
    Known known{std::vector<bool>(schedule_.classes[0].part.network.layers.size()), {}};
    for (const Step& step : schedule_.classes[0].steps) add(step, known);
    const std::vector<Layer>& layers = schedule_.classes[0].part.network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            if (!has_pass(layers[i].op, pass)) continue;
            const Problem problem{layers[i].op, pass, unit_, compute_type(schedule_.precision, layers[i].op)};
            balanced_.push_back({i, known_as(problem)});
        }
    }
}

bool Group::make_of_few(const Network& network, const schedule::Job& job, const Sharing& sharing) {
    constexpr int fewest = 3, few = 5, enough = 8;  // blocks
    const Repeats repeats = repeats_of(network);
    if (repeats.times < enough) return false;
    measure(with_blocks(network, repeats, fewest), job, sharing);
    const std::array before{activations_, activation_gradients_, update_s_};
    measure(with_blocks(network, repeats, few), job, sharing);
    // The third block of the part, if the second is as long: what was put between layers is periodic, too.
    const std::vector<Origin>& origins = schedule_.classes[0].part.origins;
    const auto block = [&](int which) {
        const auto first = std::ranges::find_if(
            origins, [&](const Origin& origin) { return origin.layer >= repeats.begin + which * repeats.length; });
        return static_cast<std::size_t>(first - origins.begin());
    };
    if (block(3) - block(2) != block(2) - block(1) || block(4) - block(3) != block(3) - block(2)) return false;
    block_begin_ = block(2);
    block_end_ = block(3);
    more_blocks_ = static_cast<std::size_t>(repeats.times - few);
    const double times = static_cast<double>(more_blocks_) / (few - fewest);
    activations_ += times * (activations_ - before[0]);
    activation_gradients_ += times * (activation_gradients_ - before[1]);
    update_s_ += times * (update_s_ - before[2]);
    return true;
}

std::vector<double> Group::running(const std::vector<double>& values) const {
    std::vector<double> sums;
    sums.reserve(values.size() + 1 + more_blocks_ * (block_end_ - block_begin_));
    sums.push_back(0);
    const auto add = [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) sums.push_back(sums.back() + values[i]);
    };
    add(0, block_end_);
    for (std::size_t i = 0; i < more_blocks_; ++i) add(block_begin_, block_end_);
    add(block_end_, values.size());
    return sums;
}

// Few are different, and those of blocks come in the same order again.
std::size_t Group::known_as(const Problem& problem) {
    const auto same = std::ranges::find(problems_, problem);
    const auto which = static_cast<std::size_t>(same - problems_.begin());
    if (same == problems_.end()) problems_.push_back(problem);
    return which;
}

void Group::add(const Step& step, Known& known) {
    const auto first = [&](std::size_t layer, Pass pass) {  // not a forward pass done again
        const bool forward = pass == Pass::forward && !known.forward[layer];
        if (forward) known.forward[layer] = true;
        return forward;
    };
    if (const auto* compute = std::get_if<Compute>(&step.action)) {
        const auto layer = static_cast<std::size_t>(compute->layer);
        computes_.push_back({layer, known_as(compute->problem), first(layer, compute->problem.pass)});
    } else if (const auto* sum = std::get_if<Communicate>(&step.action); sum != nullptr && !sum->of_bucket()) {
        const auto layer = static_cast<std::size_t>(sum->layer());
        const auto [at, fresh] = known.sums.try_emplace({sum->kind, sum->elements, sum->type}, sums_.size());
        if (fresh) sums_.push_back(*sum);
        communications_.push_back({layer, at->second, first(layer, sum->pass)});
    } else if (const auto* update = std::get_if<Update>(&step.action)) {
        update_s_ += price_of(update->problem).value;
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
    const double share = activations_ / std::max(1.0, running(outputs).back());
    std::ranges::transform(outputs, held.begin(), [&](double bytes) { return bytes * share; });
    return held;
}

void Group::find_sizes() {
    std::vector<double> weights, of_experts, operands, outputs;
    const double size = size_of(compute_type(schedule_.precision)).value;
    for (const Layer& layer : schedule_.classes[0].part.network.layers) {
        weights.push_back(static_cast<double>(parameters(layer.op)));
        of_experts.push_back(std::holds_alternative<GroupedMatMul>(layer.op) ? weights.back() : 0);
        operands.push_back(static_cast<double>(operand_bytes(schedule_.precision, layer.op)));
        outputs.push_back(size * static_cast<double>(unit_ * elements(layer.output)));
    }
    weights_ = running(weights);
    expert_weights_ = running(of_experts);
    operands_ = running(operands);
    held_ = running(held(outputs));
    outputs_ = running(outputs);
}

Seconds Group::price_of(const Problem& problem) const {
    const DeviceClass& device = rehearse::class_of(machine_, 0);
    return predict::with_overheads(price(problem, device), problem, device, framework_).time;
}

std::optional<LayerCosts> Group::costs(std::int64_t micro_batch) {
    if (micro_batch % unit_ != 0) return std::nullopt;
    const std::int64_t units = micro_batch / unit_;
    std::vector<double> computed, summed;  // seconds of each problem and sum
    for (Problem problem : problems_) {
        problem.batch *= units;
        computed.push_back(price_of(problem).value);
    }
    if (!sums_.empty() && !times_) {
        part_ = part_of(machine_, ranks(schedule_.mesh));
        times_.emplace(schedule_.mesh, *part_);
    }
    for (Communicate sum : sums_) {
        sum.elements *= units;
        summed.push_back(times_->time(sim::call_of(sum)).value);
    }
    LayerCosts costs;
    const std::size_t layers = schedule_.classes[0].part.network.layers.size();
    std::vector<double> forward(layers), backward(layers), sent(layers), balanced(layers);
    for (const Doing& each : computes_) (each.forward ? forward : backward)[each.layer] += computed[each.what];
    for (const Doing& each : balanced_) balanced[each.layer] += computed[each.what];
    for (const Doing& each : communications_) {
        (each.forward ? forward : backward)[each.layer] += summed[each.what];
        sent[each.layer] += summed[each.what];
    }
    costs.forward_s = running(forward);
    costs.backward_s = running(backward);
    costs.balanced_s = running(balanced);
    costs.computed_s = costs.forward_s.back() + costs.backward_s.back() - running(sent).back();
    const auto times = static_cast<double>(units);
    const auto scaled = [&](const std::vector<double>& bytes) {
        std::vector<double> all(bytes);
        for (double& each : all) each *= times;
        return all;
    };
    costs.weights = weights_;
    costs.expert_weights = expert_weights_;
    costs.operand_bytes = operands_;
    costs.held_bytes = scaled(held_);
    costs.output_bytes = scaled(outputs_);
    costs.passing_bytes = times * activation_gradients_;
    if (recompute_ == Recompute::blocks) {
        costs.passing_bytes += std::max(0.0, times * activations_ - costs.held_bytes.back());
    }
    costs.whole_stage = recompute_ == Recompute::all;
    costs.update_s = update_s_ / std::max(1.0, costs.weights.back());
    costs.bucket_weights = bucket_bytes / size_of(wire_type(schedule_.precision)).value;
    return costs;
}

std::vector<Stage> stages_of(const LayerCosts& costs, std::int64_t stages, int chunks) {
    const auto pieces = static_cast<std::size_t>(stages * chunks);
    if (pieces + 1 > costs.forward_s.size()) return {};
    std::vector<double> dense(costs.weights);
    std::ranges::transform(dense, costs.expert_weights, dense.begin(), std::minus{});
    std::vector<Stage> made(static_cast<std::size_t>(stages));
    std::size_t begin = 0;
    std::size_t piece = 0;
    for (const std::size_t end : cut(costs.balanced_s, pieces)) {
        Stage& stage = made[piece++ % made.size()];
        const auto between = [&](const std::vector<double>& sums) { return sums[end] - sums[begin]; };
        stage.forward_s += between(costs.forward_s);
        stage.backward_s += between(costs.backward_s);
        stage.weights += between(costs.weights);
        stage.expert_weights += between(costs.expert_weights);
        stage.buckets += buckets_of(dense, begin, end, costs.bucket_weights);  // which end where a chunk does
        stage.expert_buckets += buckets_of(costs.expert_weights, begin, end, costs.bucket_weights);
        stage.operand_bytes += between(costs.operand_bytes);
        stage.held_bytes += between(costs.held_bytes);
        stage.passing_bytes = std::max(stage.passing_bytes, costs.passing_bytes);
        if (piece < pieces) {  // the last one hands nothing on
            const double handed = costs.output_bytes[end] - costs.output_bytes[end - 1];
            if (stage.hand_overs++ == 0) stage.first_handed_bytes = handed;
            stage.handed_bytes += handed;
        }
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
