// SPDX-License-Identifier: Apache-2.0
#include "calibrate/problems.hpp"

#include <set>
#include <string>

namespace rehearse::calibrate {

namespace {

class Distinct {
public:
    void add(const Problem& problem) {
        if (seen_.insert(to_string(problem)).second) problems_.push_back(problem);
    }
    std::vector<Problem> take() { return std::move(problems_); }

private:
    std::set<std::string> seen_;
    std::vector<Problem> problems_;
};

void add_network(Distinct& found, const Network& network, std::int64_t batch, DataType type) {
    const std::vector<bool> input_gradient = needs_input_gradient(network);
    for (const Layer& layer : network.layers) {
        if (has_pass(layer.op, Pass::forward)) found.add({layer.op, Pass::forward, batch, type});
    }
    for (std::size_t i = network.layers.size(); i-- > 0;) {
        const Op& op = network.layers[i].op;
        // Where weights have no pass of their own (BatchNorm), their gradient comes with that of the input.
        const bool both = parameters(op) > 0 && !has_pass(op, Pass::backward_weights);
        const bool backward_data = has_pass(op, Pass::backward_data) && (input_gradient[i] || both);
        if (has_pass(op, Pass::backward_weights)) found.add({op, Pass::backward_weights, batch, type});
        if (backward_data) found.add({op, Pass::backward_data, batch, type});
    }
    if (parameters(network) > 0) found.add({SgdUpdate{parameters(network)}, Pass::update, 1, type});
}

}  // namespace

std::vector<Problem> problems(const Schedule& schedule) {
    Distinct found;
    for (const RankClass& program : schedule.classes) {
        for (const Step& step : program.steps) {
            if (const auto* compute = std::get_if<Compute>(&step.action)) found.add(compute->problem);
            if (const auto* update = std::get_if<Update>(&step.action)) found.add(update->problem);
        }
    }
    return found.take();
}

std::vector<Problem> problems(std::span<const Network> networks, std::span<const std::int64_t> batches, DataType type) {
    Distinct found;
    for (const Network& network : networks) {
        for (const std::int64_t batch : batches) add_network(found, network, batch, type);
    }
    return found.take();
}

}  // namespace rehearse::calibrate
