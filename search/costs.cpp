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
#include "schedule/activations.hpp"
#include "schedule/memory.hpp"
#include "search/repeats.hpp"
#include "search/stages.hpp"
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

std::vector<double> Group::of_all(const std::vector<double>& values) const {
    std::vector<double> all;
    all.reserve(values.size() + more_blocks_ * (block_end_ - block_begin_));
    const auto add = [&](std::size_t begin, std::size_t end) {
        all.insert(all.end(), values.begin() + static_cast<std::ptrdiff_t>(begin),
                   values.begin() + static_cast<std::ptrdiff_t>(end));
    };
    add(0, block_end_);
    for (std::size_t i = 0; i < more_blocks_; ++i) add(block_begin_, block_end_);
    add(block_end_, values.size());
    return all;
}

std::vector<double> Group::running(const std::vector<double>& values) const {
    std::vector<double> sums = of_all(values);
    sums.insert(sums.begin(), 0);
    std::partial_sum(sums.begin(), sums.end(), sums.begin());
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
    const schedule::LayerMemory memory = schedule::layer_memory(schedule_, schedule_.classes[0]);
    held_ = running(memory.held);
    memory_ = {.held = {},
               .taken = of_all(memory.taken),
               .left = of_all(memory.left),
               .passing = of_all(memory.passing),
               .exchanged = of_all(memory.exchanged)};
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
    costs.memory = {.held = {},
                    .taken = scaled(memory_.taken),
                    .left = scaled(memory_.left),
                    .passing = scaled(memory_.passing),
                    .exchanged = scaled(memory_.exchanged)};
    costs.whole_stage = recompute_ == Recompute::all;
    costs.fullest_bytes = times * (activation_gradients_ + (costs.whole_stage ? 0 : activations_));
    costs.update_s = update_s_ / std::max(1.0, costs.weights.back());
    costs.bucket_weights = bucket_bytes / size_of(wire_type(schedule_.precision)).value;
    return costs;
}

}  // namespace rehearse::search
