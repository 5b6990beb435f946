// SPDX-License-Identifier: Apache-2.0
#include "search/screen.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/precision.hpp"

namespace rehearse::search {
namespace {

constexpr double bucket_bytes = 25e6;  // the plan language's default

double size(DataType type) { return size_of(type).value; }

/// Micro-batches of a whole stage that are forward but not yet backward at the same time.
double in_flight(const Choices& choices, std::int64_t stage) {
    const auto stages = static_cast<double>(choices.shape.pipe), s = static_cast<double>(stage);
    const auto micro_batches = static_cast<double>(choices.micro_batches);
    if (choices.shape.pipe == 1) return 1;
    if (choices.chunks == 1) return std::min(micro_batches, stages - s);
    const double pieces = 2 * (stages - s - 1) + (choices.chunks - 1) * stages + 1;
    return std::min(micro_batches, pieces / choices.chunks);
}

}  // namespace

Screen::Screen(const Network& network, const Machine& machine, const schedule::Job& job)
    : network_(network), machine_(machine), job_(job), wires_(machine) {}

std::optional<Group>& Screen::group(std::int64_t tensor, bool sequence, schedule::Recompute recompute) {
    const auto [known, fresh] = groups_.try_emplace({tensor, sequence, recompute});
    if (!fresh) return known->second;
    try {
        known->second.emplace(network_, machine_, job_, tensor, sequence, recompute);
    } catch (const InputError& error) {
        if (std::ranges::find(refusals_, error.what()) == refusals_.end()) refusals_.emplace_back(error.what());
    }
    return known->second;
}

Screen::Cell& Screen::cell(std::int64_t tensor, bool sequence, std::int64_t micro_batch,
                           schedule::Recompute recompute) {
    const auto [known, fresh] = cells_.try_emplace({tensor, sequence, micro_batch, recompute});
    if (!fresh) return known->second;
    if (std::optional<Group>& ranks = group(tensor, sequence, recompute)) {
        LayerCosts costs = ranks->costs(micro_batch);
        if (!is_plain(costs, tensor, sequence, micro_batch, recompute)) known->second.costs = std::move(costs);
    }
    return known->second;
}

bool Screen::is_plain(const LayerCosts& costs, std::int64_t tensor, bool sequence, std::int64_t micro_batch,
                      schedule::Recompute recompute) {
    if (!sequence && recompute == schedule::Recompute::none) return false;
    const bool by_sequence = sequence && recompute == schedule::Recompute::none;
    const Cell& other = cell(tensor, sequence && !by_sequence, micro_batch, schedule::Recompute::none);
    if (!other.costs) return true;
    return costs.backward_s.back() == other.costs->backward_s.back() &&
           costs.held_bytes.back() + costs.passing_bytes == other.costs->held_bytes.back() + other.costs->passing_bytes;
}

std::optional<double> Screen::bound(const Shape& shape) {
    const std::int64_t batch = *job_.global_batch / shape.data;
    if (*job_.global_batch % shape.data != 0) return std::nullopt;
    std::optional<double> least;
    for (std::int64_t micro_batch = 1; micro_batch <= batch; micro_batch *= 2) {
        if (batch % micro_batch != 0) continue;
        const Cell& own = cell(shape.tensor, false, micro_batch, schedule::Recompute::none);
        if (!own.costs) return std::nullopt;
        const double pass = own.costs->forward_s.back() + own.costs->backward_s.back();
        const double step = pass * static_cast<double>(batch / micro_batch) / static_cast<double>(shape.pipe);
        if (!least || step < *least) least = step;
    }
    return least;
}

std::optional<Estimate> Screen::estimate(Choices& choices) {
    Cell& own = cell(choices.shape.tensor, choices.sequence, choices.micro_batch, choices.recompute);
    if (!own.costs) return std::nullopt;
    const auto [stages, fresh] = own.stages.try_emplace({choices.shape.pipe, choices.chunks});
    if (fresh) stages->second = stages_of(*own.costs, choices.shape.pipe, choices.chunks);
    if (stages->second.empty()) return std::nullopt;
    return Estimate{step(choices, stages->second, own.costs->update_s), memory(choices, stages->second)};
}

double Screen::step(Choices& choices, const std::vector<Stage>& stages, double update_s) {
    Line sum;
    if (choices.shape.data > 1 && choices.zero < 2) {
        const Wires::Sum& best = wires_.sum(choices.shape, bucket_bytes);
        sum = best.line;
        choices.all_reduce = best.algorithm;
    }
    double longest = 0, all = 0, tail = 0;
    for (const Stage& stage : stages) {
        const double pass = stage.forward_s + stage.backward_s;
        longest = std::max(longest, pass);
        all += pass;
        const double share = choices.zero > 0 ? static_cast<double>(choices.shape.data) : 1;
        tail = std::max(tail, exposed(choices, stage, sum) + update_s * stage.weights / share);
    }
    double step = static_cast<double>(choices.micro_batches) * longest + (all - longest) / choices.chunks + tail;
    if (choices.shape.pipe > 1) {
        const Line hop = wires_.hop(choices.shape);
        for (std::size_t s = 0; s + 1 < stages.size(); ++s) step += 2 * hop.at(stages[s].handed_bytes);
    }
    return step;
}

/// What the other copies of a stage are waited for, beyond its passes.
double Screen::exposed(const Choices& choices, const Stage& stage, const Line& sum) {
    if (choices.shape.data == 1) return 0;
    const double bytes = stage.weights * size(wire_type(job_.precision));
    const double buckets = std::max(1.0, std::ceil(bytes / bucket_bytes));
    const auto whole = [&](const Line& line) { return buckets * line.start_s + bytes * line.s_per_byte; };
    const auto behind = [&](double seconds, double cover) {  // the last bucket is ready when nothing is left to do
        return std::max(seconds / buckets, seconds - cover * (1 - 1 / buckets));
    };
    const double gather = choices.zero > 0 ? whole(wires_.piecewise(CollectiveKind::all_gather, choices.shape)) : 0;
    if (choices.zero < 2) return behind(whole(sum), stage.backward_s) + gather;
    const double scatter = whole(wires_.piecewise(CollectiveKind::reduce_scatter, choices.shape));
    if (choices.zero == 2) return behind(scatter, stage.backward_s) + gather;
    const auto times = static_cast<double>(choices.micro_batches);
    return behind(times * (2 * gather + scatter), times * (stage.forward_s + stage.backward_s));
}

double Screen::memory(const Choices& choices, const std::vector<Stage>& stages) const {
    const double compute = size(compute_type(job_.precision)), wire = size(wire_type(job_.precision));
    const double update = size(update_type(job_.precision));
    const bool copies = update_type(job_.precision) != compute_type(job_.precision);
    const auto ranks = static_cast<double>(choices.shape.data);
    double most = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const Stage& stage = stages[s];
        const double updated = choices.zero > 0 ? stage.weights / ranks : stage.weights;
        const bool scattered = choices.zero == 3 || (choices.zero == 2 && choices.micro_batches == 1);
        double bytes = (choices.zero == 3 ? updated + 2 * bucket_bytes / wire : stage.weights) * compute;
        bytes += (scattered ? updated : stage.weights) * wire;
        bytes += updated * update * (static_cast<double>(moments(job_.optimizer)) + (copies ? 1 : 0));
        if (choices.shape.data > 1) bytes += bucket_bytes;
        bytes += in_flight(choices, static_cast<std::int64_t>(s)) * stage.held_bytes + stage.passing_bytes;
        most = std::max(most, bytes);
    }
    return most;
}

}  // namespace rehearse::search
