// SPDX-License-Identifier: Apache-2.0
#include "schedule/layer_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/precision.hpp"

namespace rehearse::schedule {

void LayerSteps::compute(int i, Pass pass, bool again) {
    context_.last_compute = computed_step(i, pass, again ? ":again" : "", again, before(i, pass));
}

std::vector<int> LayerSteps::before(int i, Pass pass) {
    std::vector<int> after;
    if (pass == Pass::forward) {
        for (const int input : context_.layers()[at(i)].inputs) after.push_back(context_.output_by[at(input)]);
        // What is made again overwrites what is sent.
        if (!context_.item.forward) after.push_back(last_output_sent());
    } else {
        after = context_.gradient_by[at(i)];
        if (pass == Pass::backward_data) after_gradients_of_inputs(i, after);
        after.insert(after.end(), made_again_.begin(), made_again_.end());
        made_again_.clear();
    }
    const bool gives =
        pass == Pass::backward_weights || (pass != Pass::forward && gradients_together(context_.layers()[at(i)].op));
    for (const int gather : std::exchange(context_.weights_by, {})) after.push_back(gather);
    if (gives && context_.options.sum.zero == 3) after.push_back(last_sum_of_gradients(i));
    if (pass == Pass::backward_weights) after.push_back(std::exchange(gathered_again_, none));
    // What this item overwrites must have left.
    if (!started_ && !context_.item.forward) after.push_back(last_gradient_sent());
    started_ = true;
    return after;
}

int LayerSteps::computed_step(int i, Pass pass, std::string_view suffix, bool again, std::vector<int> after) {
    const Op& op = computed(context_.layers()[at(i)].op);
    Problem problem{op, pass, context_.samples, compute_type(context_.schedule.precision, op)};
    const int step =
        context_.append(context_.name_of(i, to_string(pass), suffix), Stream::compute,
                        Compute{LayerIndex{i}, std::move(problem), context_.item.micro_batch}, std::move(after));
    context_.steps.back().recomputed = again;
    return step;
}

// The step that last summed the bucket that layer i's gradients go into: of a tied layer, its owner's bucket.
int LayerSteps::last_sum_of_gradients(int i) const {
    const int owner = context_.layers()[at(i)].weights_of;
    const int bucket = context_.bucket_of[at(owner >= 0 ? owner : i)];
    return bucket == none ? none : context_.ready_by[at(bucket)];
}

int LayerSteps::last_output_sent() const {
    const auto sent = outputs_sent_.find({context_.item.chunk, context_.item.micro_batch});
    return sent == outputs_sent_.end() ? none : sent->second;
}

// A layer adds its part to what came to its inputs from elsewhere.
void LayerSteps::after_gradients_of_inputs(int i, std::vector<int>& after) const {
    for (const int input : context_.layers()[at(i)].inputs) {
        after.insert(after.end(), context_.gradient_by[at(input)].begin(), context_.gradient_by[at(input)].end());
    }
}

int LayerSteps::last_gradient_sent() const {
    int step = none;
    for (const auto& [item, sent] : sent_gradients_) {
        const int turns = turn_of(context_.rank_class, context_.item.micro_batch - item.micro_batch);
        if (item.chunk == context_.item.chunk && turns >= slots_) step = sent;
    }
    return step;
}

std::int64_t LayerSteps::elements_of(int i, Pass pass) const {
    const auto& op = std::get<Communication>(context_.layers()[at(i)].op);
    const bool joins = op.movement == Movement::gather || op.movement == Movement::all_gather;
    if (op.movement != Movement::halo) return elements(joins ? context_.layers()[at(i)].output : op.shape);
    const std::int64_t row = elements(op.shape) / op.halo.own;
    return row * (pass == Pass::forward ? op.halo.own + op.halo.size : op.halo.size + 2 * op.halo.own);
}

Algorithm LayerSteps::algorithm_of(int i, CollectiveKind kind, Pass pass) const {
    const auto& op = std::get<Communication>(context_.layers()[at(i)].op);
    if (kind == CollectiveKind::halo) {
        return {.name = pass == Pass::forward ? "lend" : "return", .halo = op.halo};
    }
    if (kind == CollectiveKind::all_to_all) return {.name = "pairwise"};
    if (kind == CollectiveKind::all_reduce) return context_.options.tensor;
    return op.axis == "tensor" ? context_.options.tensor_halves : Algorithm{};
}

int LayerSteps::collective(int i, CollectiveKind kind, Pass pass, int needs, std::string_view suffix) {
    const auto& op = std::get<Communication>(context_.layers()[at(i)].op);
    Communicate action{.kind = kind,
                       .axis = AxisIndex{axis_index(context_.schedule.mesh, op.axis)},
                       .elements = context_.samples * elements_of(i, pass),
                       .type = compute_type(context_.schedule.precision),
                       .algorithm = algorithm_of(i, kind, pass),
                       .of = LayerIndex{i},
                       .pass = pass,
                       .micro_batch = context_.item.micro_batch};
    std::vector<int> after{context_.last_compute, needs};
    if (pass != Pass::forward) {
        after.insert(after.end(), context_.gradient_by[at(i)].begin(), context_.gradient_by[at(i)].end());
        after_gradients_of_inputs(i, after);
    }
    const std::string what =
        pass == Pass::forward ? std::string{pass_of(kind)} : "gradient_" + std::string{pass_of(kind)};
    return context_.append(context_.name_of(i, what, suffix), communicator_stream(context_.schedule.mesh, action.axis),
                           action, std::move(after));
}

Bytes LayerSteps::bytes_of(const Communication& op) const {
    const auto count = static_cast<double>(context_.samples * elements(op.shape));
    return count * size_of(compute_type(context_.schedule.precision));
}

int LayerSteps::send(int i, const Communication& op, Stream stream, std::string_view what, int needs) {
    std::vector<int> after{needs, context_.last_compute};
    const std::vector<int>& gradients = context_.gradient_by[at(i)];
    if (!context_.item.forward) after.insert(after.end(), gradients.begin(), gradients.end());
    const AxisIndex axis{axis_index(context_.schedule.mesh, op.axis)};
    const int step = context_.append(
        context_.name_of(i, what, ""), stream,
        Send{axis, context_.places_to(op.offset), bytes_of(op), LayerIndex{i}, context_.item.micro_batch},
        std::move(after));
    if (context_.item.forward) {
        outputs_sent_[{context_.item.chunk, context_.item.micro_batch}] = step;
    } else {
        sent_gradients_.push_back({context_.item, step});
    }
    return step;
}

int LayerSteps::receive(int i, const Communication& op, Stream stream, std::string_view what) {
    std::vector<int> after;
    if (ends_.size() >= 2) after.push_back(ends_[ends_.size() - 2]);
    // A gradient that is handed on lies where the slot's next one comes: it must have left.
    if (!context_.item.forward) after.push_back(last_gradient_sent());
    const AxisIndex axis{axis_index(context_.schedule.mesh, op.axis)};
    return context_.append(
        context_.name_of(i, what, ""), stream,
        Recv{axis, context_.places_to(op.offset), bytes_of(op), LayerIndex{i}, context_.item.micro_batch},
        std::move(after));
}

void LayerSteps::gather_again(int i) {
    gathered_again_ = collective(i, CollectiveKind::all_gather, Pass::forward, none, ":backward");
}

void LayerSteps::wait_for_outputs(Chunk chunk) {
    for (int i = chunk.begin; i < chunk.end; ++i) {
        if (context_.output_by[at(i)] != none) made_again_.push_back(context_.output_by[at(i)]);
    }
}

}  // namespace rehearse::schedule
