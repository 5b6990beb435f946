// SPDX-License-Identifier: Apache-2.0
#include "schedule/steps.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/gathered_again.hpp"
#include "core/precision.hpp"
#include "core/ring_attention.hpp"
#include "schedule/blocks.hpp"
#include "schedule/methods/gathers.hpp"
#include "schedule/step_maker.hpp"

namespace rehearse::schedule {

namespace {

/// The gradient of the weights first, as Caffe does: its bucket is ready one pass earlier, and the layer's input can be
/// let go before the gradient of that input is made. PyTorch hands out both at once, after the data's. The data's first
/// where it is for other ranks, which it can send meanwhile: rows, or experts' slots.
std::vector<Pass> backward_passes(const Op& op, bool needs_input_gradient, bool data_first) {
    std::vector<Pass> passes;
    if (has_pass(op, Pass::backward_weights)) passes.push_back(Pass::backward_weights);
    if (has_pass(op, Pass::backward_data) && (needs_input_gradient || gradients_together(op))) {
        passes.insert(data_first ? passes.begin() : passes.end(), Pass::backward_data);
    }
    return passes;
}

/// What moves in the forward pass, and what the gradient does; nothing: no collective.
std::optional<CollectiveKind> forward_collective(Movement movement) {
    switch (movement) {
        case Movement::sum:
            return CollectiveKind::all_reduce;
        case Movement::gather:
        case Movement::all_gather:
            return CollectiveKind::all_gather;
        case Movement::reduce_scatter:
            return CollectiveKind::reduce_scatter;
        case Movement::halo:
            return CollectiveKind::halo;
        case Movement::all_to_all:
            return CollectiveKind::all_to_all;
        default:
            return std::nullopt;
    }
}
std::optional<CollectiveKind> backward_collective(Movement movement) {
    switch (movement) {
        case Movement::copy:
            return CollectiveKind::all_reduce;
        case Movement::slice:
        case Movement::reduce_scatter:
            return CollectiveKind::all_gather;
        case Movement::all_gather:
            return CollectiveKind::reduce_scatter;
        case Movement::halo:
            return CollectiveKind::halo;
        case Movement::all_to_all:
            return CollectiveKind::all_to_all;
        default:
            return std::nullopt;
    }
}

}  // namespace

StepMaker::StepMaker(StepContext& context, const std::vector<Chunk>& chunks, int slots)
    : context_(context),
      chunks_(chunks),
      steps_(context, slots),
      buckets_(context),
      needed_(needs_input_gradient(context.part.network)),
      readers_(consumers(context.part.network)) {}

void StepMaker::run(const Order& order) {
    for (const auto& method : buckets_.methods()) method->begin();
    std::size_t forwards = 0, backwards = 0;  // steps of the first item; the others are much alike
    for (const Item& item : order) {
        context_.item = item;
        steps_.begin_item();
        const std::size_t before = context_.steps.size();
        if (item.forward) {
            forward(chunks_[at(item.chunk)], false);
        } else {
            backward(chunks_[at(item.chunk)]);
        }
        std::size_t& first = item.forward ? forwards : backwards;
        if (first == 0) {
            first = context_.steps.size() - before;
            if (forwards > 0 && backwards > 0) context_.steps.reserve((forwards + backwards) * (order.size() / 2 + 1));
        }
        steps_.end_item();
        // A micro-batch has gone back through all chunks when the first one is done.
        if (!item.forward && item.chunk == 0 && context_.options.asynchronous) buckets_.sum_and_update();
    }
    if (!context_.options.asynchronous) buckets_.sum_and_update();
    for (const auto& method : buckets_.methods()) method->end();
}

void StepMaker::forward(Chunk chunk, bool again) {
    for (int i = chunk.begin; i < chunk.end; ++i) {
        const Layer& layer = context_.layers()[at(i)];
        context_.output_by[at(i)] = none;
        for (const int input : layer.inputs) {
            context_.output_by[at(i)] = std::max(context_.output_by[at(i)], context_.output_by[at(input)]);
        }
        if (const auto* op = std::get_if<Communication>(&layer.op)) {
            const bool between_stages = op->movement == Movement::send || op->movement == Movement::receive;
            if (!again || !between_stages) communicate_forward(i, *op, again);
        } else if (has_pass(layer.op, Pass::forward)) {
            // The loss is of no use to the backward pass: its gradient comes from its input.
            if (in_ring(i)) {
                steps_.attend_in_turns(i, Pass::forward, again);
            } else if (!again || !is_loss(layer.op)) {
                steps_.compute(i, Pass::forward, again);
            }
            context_.output_by[at(i)] = none;
        }
    }
}

void StepMaker::communicate_forward(int i, const Communication& op, bool again) {
    int& output_by = context_.output_by[at(i)];
    if (const auto kind = forward_collective(op.movement)) {
        output_by = steps_.collective(i, *kind, Pass::forward, output_by, again ? ":again" : "");
        context_.steps.back().recomputed = again;
    } else if (op.movement == Movement::slice) {
        steps_.compute(i, Pass::forward, again);
        output_by = none;
    } else if (op.movement == Movement::send) {
        steps_.send(i, op, Stream::send_activations, "send", output_by);
    } else if (op.movement == Movement::receive) {
        output_by = steps_.receive(i, op, Stream::receive_activations, "receive");
    }
}

void StepMaker::backward(Chunk chunk) {
    for (int i = chunk.begin; i < chunk.end; ++i) context_.gradient_by[at(i)].clear();
    if (context_.options.recompute != Recompute::blocks) {
        if (context_.options.recompute == Recompute::all) forward_again(chunk);
        return backward_of(chunk);
    }
    const std::vector<Chunk> parts = segments(context_.part.network, chunk);
    for (std::size_t i = parts.size(); i-- > 0;) {
        if (is_block(context_.part.network, parts[i])) forward_again(parts[i]);
        backward_of(parts[i]);
    }
}

void StepMaker::forward_again(Chunk chunk) {
    forward(chunk, true);
    steps_.wait_for_outputs(chunk);
}

void StepMaker::backward_of(Chunk chunk) {
    for (int i = chunk.end; i-- > chunk.begin;) {
        if (const auto* op = std::get_if<Communication>(&context_.layers()[at(i)].op)) {
            if (exchanged_.erase(i) > 0) continue;
            if (i < sent_down_to_ || i > sent_from_) communicate_backward(i, *op);
        } else {
            if (precedes(i, chunk)) send_halos(i - 1, chunk);
            gradients_of(i, chunk);
        }
    }
}

bool StepMaker::precedes(int i, Chunk chunk) const {
    return i > chunk.begin && is_halo(i - 1) && readers_[at(i - 1)].front() > i;
}

bool StepMaker::in_ring(int i) const { return ring_of(context_.schedule, context_.part, i) > 1; }

void StepMaker::gradients_of(int i, Chunk chunk) {
    if (in_ring(i)) {
        if (needed_[at(i)]) give(i, steps_.attend_in_turns(i, Pass::backward_data, false));
        return;
    }
    const Op& op = context_.layers()[at(i)].op;
    if (context_.options.recompute == Recompute::attention && std::holds_alternative<Attention>(op)) {
        steps_.compute(i, Pass::forward, true);
    }
    const bool last = context_.in_last();
    const int halo = own_halo(i, chunk), bucket = context_.bucket_of[at(i)];
    const std::vector<Pass> passes = backward_passes(op, needed_[at(i)], halo != none || exchanges_input(i));
    gather_again(i);
    for (const Pass pass : passes) {
        const bool weights = pass == Pass::backward_weights;
        if (!weights || makes_gradient_of_weights(i)) steps_.compute(i, pass);
        for (const auto& method : buckets_.methods()) {
            if (weights && bucket != none) method->made_gradient(bucket);
        }
        if (pass == Pass::backward_data && halo != none) send_halos(halo, chunk);
        if (pass == Pass::backward_data) exchange_gradients(i);
        if (weights || gradients_together(op)) buckets_.made_gradient(i, last);
    }
    if (passes.empty()) pass_on(i);  // a view
}

bool StepMaker::makes_gradient_of_weights(int i) const {
    const int bucket = context_.bucket_of[at(i)];
    return bucket == none ||
           std::ranges::all_of(buckets_.methods(), [&](const auto& method) { return method->makes_gradient(bucket); });
}

bool StepMaker::is_halo(int i) const {
    const auto* op = std::get_if<Communication>(&context_.layers()[at(i)].op);
    return op != nullptr && op->movement == Movement::halo;
}

int StepMaker::own_halo(int i, Chunk chunk) const {
    const bool follows =
        i > chunk.begin && context_.layers()[at(i)].inputs == std::vector<int>{i - 1} && is_halo(i - 1);
    return follows && readers_[at(i - 1)].size() == 1 && has_pass(context_.layers()[at(i)].op, Pass::backward_weights)
               ? i - 1
               : none;
}

void StepMaker::send_halos(int halo, Chunk chunk) {
    sent_from_ = sent_down_to_ = halo;
    for (int i = halo; i >= chunk.begin && is_halo(i); --i) {
        communicate_backward(i, std::get<Communication>(context_.layers()[at(i)].op));
        sent_down_to_ = i;
        if (context_.layers()[at(i)].inputs.front() != i - 1 || readers_[at(i - 1)].size() != 1) return;
    }
}

// Of layers that read the same rows (queries, keys and values), the first is the last to give its gradient.
bool StepMaker::is_own_exchange(int i, int input) const {
    const auto* op = std::get_if<Communication>(&context_.layers()[at(input)].op);
    const bool summed = context_.options.async_sums && op != nullptr && op->movement == Movement::copy;
    return ((summed || gathers_again(context_.layers()[at(input)])) && readers_[at(input)].front() == i) ||
           (op != nullptr && op->movement == Movement::all_to_all && readers_[at(input)].size() == 1);
}

void StepMaker::gather_again(int i) {
    for (const int input : context_.layers()[at(i)].inputs) {
        if (!gathers_again(context_.layers()[at(input)]) || readers_[at(input)].back() != i ||
            !has_pass(context_.layers()[at(i)].op, Pass::backward_weights))
            continue;
        steps_.gather_again(input);
    }
}

bool StepMaker::exchanges_input(int i) const {
    return std::ranges::any_of(context_.layers()[at(i)].inputs, [&](int input) { return is_own_exchange(i, input); });
}

void StepMaker::exchange_gradients(int i) {
    for (const int input : context_.layers()[at(i)].inputs) {
        if (!is_own_exchange(i, input)) continue;
        communicate_backward(input, std::get<Communication>(context_.layers()[at(input)].op));
        exchanged_.insert(input);
    }
}

void StepMaker::communicate_backward(int i, const Communication& op) {
    if (const auto kind = backward_collective(op.movement)) {
        if (needed_[at(i)]) give(i, steps_.collective(i, *kind, Pass::backward_data, none, ""));
    } else if (op.movement == Movement::sum) {
        pass_on(i);
    } else if (op.movement == Movement::gather) {
        if (needed_[at(i)]) steps_.compute(i, Pass::backward_data);
    } else if (op.movement == Movement::send && op.gradient) {
        give(i, steps_.receive(i, op, Stream::receive_gradients, "receive_gradient"));
    } else if (op.movement == Movement::receive && op.gradient) {
        steps_.send(i, op, Stream::send_gradients, "send_gradient", none);
    }
}

void StepMaker::pass_on(int i) {
    for (const int by : std::vector<int>{context_.gradient_by[at(i)]}) give(i, by);
}

void StepMaker::give(int i, int step) {
    for (const int input : context_.layers()[at(i)].inputs) context_.gradient_by[at(input)].push_back(step);
}

void make_steps(const Schedule& schedule, const Plan& plan, const Order& order, const std::vector<Chunk>& chunks,
                const StepOptions& options, RankClass& rank_class) {
    const bool receives = std::ranges::any_of(rank_class.part.network.layers, [](const Layer& layer) {
        const auto* op = std::get_if<Communication>(&layer.op);
        return op != nullptr && (op->movement == Movement::receive || op->movement == Movement::send);
    });
    rank_class.in_flight = most_in_flight(order, static_cast<int>(chunks.size()));
    rank_class.slots =
        std::min(rank_class.in_flight + (receives ? 1 : 0), std::max(schedule.micro_batches / rank_class.copies, 1));
    StepContext context{schedule, plan, options, rank_class};
    StepMaker{context, chunks, rank_class.slots}.run(order);
    if (options.sum.zero == 3)
        gather_weights(schedule.mesh, options.sum.halves, compute_type(schedule.precision), rank_class);
}

}  // namespace rehearse::schedule
