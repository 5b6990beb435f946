// SPDX-License-Identifier: Apache-2.0
#include "core/gradient_sums.hpp"

#include <set>
#include <utility>

#include "core/index.hpp"
#include "core/ring_attention.hpp"

namespace rehearse {

namespace {

const Communication* communication(const Layer& layer) { return std::get_if<Communication>(&layer.op); }

bool moves(const Layer& layer, Movement movement) {
    return communication(layer) != nullptr && communication(layer)->movement == movement;
}

class Sums {
public:
    Sums(const Schedule& schedule, const RankClass& rank_class)
        : schedule_(schedule), rank_class_(rank_class), layers_(rank_class.part.network.layers) {
        const Network& network = rank_class.part.network;
        const std::vector<std::vector<int>> readers = consumers(network);
        wanted_ = needs_input_gradient(network);
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            const Layer& layer = layers_[i];
            const bool received = moves(layer, Movement::receive) && communication(layer)->gradient;
            wanted_[i] = wanted_[i] || parameters(layer.op) > 0 || layer.weights_of >= 0 || received;
            // A view's gradient is its input's; but one that is handed to other ranks is its own where others read too.
            const bool handed = moves(layer, Movement::copy) || moves(layer, Movement::send);
            const bool view = handed || std::holds_alternative<Flatten>(layer.op) || moves(layer, Movement::sum);
            const bool shared = handed && readers[at(layer.inputs.front())].size() > 1;
            stored_as_.push_back(view && !shared ? stored_as_[at(layer.inputs.front())] : static_cast<int>(i));
        }
        for (const Step& step : rank_class.steps) find_scattered(rank_class.part, step);
    }

    std::vector<Problem> of(const Step& step) {
        sums_.clear();
        if (const auto* compute = std::get_if<Compute>(&step.action)) of_compute(*compute);
        if (const auto* shared = std::get_if<Communicate>(&step.action)) of_communicate(*shared);
        const auto* recv = std::get_if<Recv>(&step.action);
        if (recv != nullptr && recv->layer >= 0 && moves(layers_[at(recv->layer)], Movement::send)) {
            given(layers_[at(recv->layer)].inputs.front(), recv->micro_batch);
        }
        return std::move(sums_);
    }

private:
    // Buckets that the ranks share out after every micro-batch: what comes of it is added there.
    void find_scattered(const Part& part, const Step& step) {
        const auto* scatter = std::get_if<Communicate>(&step.action);
        if (scatter == nullptr || scatter->kind != CollectiveKind::reduce_scatter || !scatter->of_bucket()) return;
        if (is_last(schedule_, rank_class_, scatter->micro_batch)) return;
        const std::vector<int>& layers = part.buckets[at(scatter->bucket())].layers;
        summed_each_time_.insert(layers.begin(), layers.end());
    }

    void add(const Shape& shape, std::int64_t batch, DataType type) {
        sums_.push_back({Add{shape, 2}, Pass::forward, batch, type});
    }

    void of_compute(const Compute& compute) {
        if (compute.problem.pass == Pass::forward) return;
        const Layer& layer = layers_[at(compute.layer)];
        const bool last = compute.problem.pass == Pass::backward_weights || !has_pass(layer.op, Pass::backward_weights);
        if (last && weights_read(layer.op) > 0 && communication(layer) == nullptr) of_weights(compute);
        if (compute.problem.pass != Pass::backward_data) return;
        if (ring_of(schedule_, rank_class_.part, compute.layer) > 1) return;  // gives with the last that comes
        for (const int input : layer.inputs) {
            const int stored = stored_as_[at(input)];
            if (!wanted_[at(stored)] || given(input, compute.micro_batch)) continue;
            add(layers_[at(stored)].output, micro_batch_size(schedule_, rank_class_), compute.problem.type);
        }
    }

    void of_weights(const Compute& compute) {
        const auto count = [&](int layer) { return Shape{weights_read(layers_[at(layer)].op)}; };
        const bool fresh = has_weights_.insert(compute.layer).second;
        if (!fresh && !summed_each_time_.contains(compute.layer)) add(count(compute.layer), 1, compute.problem.type);
        if (!is_last(schedule_, rank_class_, compute.micro_batch)) return;
        if (compute.problem.pass != Pass::backward_weights) return;
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            if (layers_[i].weights_of == compute.layer) add(count(static_cast<int>(i)), 1, compute.problem.type);
        }
    }

    // What arrives on another stream is added there.
    void of_communicate(const Communicate& shared) {
        if (shared.of_bucket() || shared.pass == Pass::forward) return;
        for (const int input : layers_[at(shared.layer())].inputs) given(input, shared.micro_batch);
    }

    // Whether it is the first gradient of this layer's output.
    bool given(int layer, int micro_batch) { return has_gradient_.insert({stored_as_[at(layer)], micro_batch}).second; }

    const Schedule& schedule_;
    const RankClass& rank_class_;
    const std::vector<Layer>& layers_;
    std::vector<bool> wanted_;
    std::vector<int> stored_as_;
    std::set<std::pair<int, int>> has_gradient_;  // layers and micro-batches
    std::set<int> has_weights_, summed_each_time_;
    std::vector<Problem> sums_;
};

}  // namespace

std::vector<std::vector<Problem>> gradient_sums(const Schedule& schedule, const RankClass& rank_class) {
    Sums sums{schedule, rank_class};
    std::vector<std::vector<Problem>> by_step;
    by_step.reserve(rank_class.steps.size());
    for (const Step& step : rank_class.steps) by_step.push_back(sums.of(step));
    return by_step;
}

}  // namespace rehearse
