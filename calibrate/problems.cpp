// SPDX-License-Identifier: Apache-2.0
#include "calibrate/problems.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/gradient_sums.hpp"

namespace rehearse::calibrate {

namespace {

class Distinct {
public:
    void add(const Problem& problem, Bytes footprint) {
        const auto [at, is_new] = index_.try_emplace(to_string(problem), needed_.size());
        if (is_new) needed_.push_back({problem, footprint});
        Needed& needed = needed_[at->second];
        needed.footprint = std::max(needed.footprint, footprint);
    }
    std::vector<Needed> take() { return std::move(needed_); }

private:
    std::map<std::string, std::size_t> index_;
    std::vector<Needed> needed_;
};

void add_network(Distinct& found, const Network& network, std::int64_t batch, DataType type) {
    const Bytes touched = footprint(network, batch, type);
    const std::vector<bool> input_gradient = needs_input_gradient(network);
    for (const Layer& layer : network.layers) {
        if (has_pass(layer.op, Pass::forward)) found.add({layer.op, Pass::forward, batch, type}, touched);
    }
    for (std::size_t i = network.layers.size(); i-- > 0;) {
        const Op& op = network.layers[i].op;
        const bool backward_data = has_pass(op, Pass::backward_data) && (input_gradient[i] || gradients_together(op));
        if (has_pass(op, Pass::backward_weights)) found.add({op, Pass::backward_weights, batch, type}, touched);
        if (backward_data) found.add({op, Pass::backward_data, batch, type}, touched);
    }
    if (parameters(network) > 0) found.add({SgdUpdate{parameters(network)}, Pass::update, 1, type}, touched);
}

void add_schedule(Distinct& found, const Schedule& schedule) {
    const Bytes touched = footprint(schedule.network, schedule.batch_per_rank);
    for (const RankClass& program : schedule.classes) {
        for (const Step& step : program.steps) {
            const auto* compute = std::get_if<Compute>(&step.action);
            // A Communication's own piece is a copy, without a kernel: it has the roofline's price.
            const bool kernel = compute != nullptr && !std::holds_alternative<Communication>(compute->problem.op);
            if (kernel) found.add(compute->problem, touched);
            const Problem* problem = problem_of(step);
            if (compute == nullptr && problem != nullptr) found.add(*problem, touched);
        }
        for (const std::vector<Problem>& sums : gradient_sums(schedule, program)) {
            for (const Problem& sum : sums) found.add(sum, touched);
        }
    }
}

}  // namespace

Bytes footprint(const Network& network, std::int64_t batch, DataType type) {
    const Bytes weights = size_of(type) * static_cast<double>(parameters(network));
    return 2 * static_cast<double>(batch) * activation_bytes(network, type) + 3 * weights;
}

std::vector<Needed> problems(std::span<const Schedule> schedules) {
    Distinct found;
    for (const Schedule& schedule : schedules) add_schedule(found, schedule);
    return found.take();
}

std::vector<Needed> problems(std::span<const Network> networks, std::span<const std::int64_t> batches, DataType type) {
    Distinct found;
    for (const Network& network : networks) {
        for (const std::int64_t batch : batches) add_network(found, network, batch, type);
    }
    return found.take();
}

}  // namespace rehearse::calibrate
