// SPDX-License-Identifier: Apache-2.0
#include "schedule/steps.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/gathered_again.hpp"
#include "core/precision.hpp"
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
        case Movement::spread:
            return CollectiveKind::all_gather;
        case Movement::scatter:
            return CollectiveKind::reduce_scatter;
        case Movement::halo:
            return CollectiveKind::halo;
        case Movement::exchange:
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
        case Movement::scatter:
            return CollectiveKind::all_gather;
        case Movement::spread:
            return CollectiveKind::reduce_scatter;
        case Movement::halo:
            return CollectiveKind::halo;
        case Movement::exchange:
            return CollectiveKind::all_to_all;
        default:
            return std::nullopt;
    }
}

}  // namespace

StepMaker::StepMaker(const Schedule& schedule, const std::vector<Chunk>& chunks, const StepOptions& options,
                     RankClass& made)
    : schedule_(schedule),
      chunks_(chunks),
      options_(options),
      part_(made.part),
      network_(made.part.network),
      layers_(made.part.network.layers),
      buckets_(made.part.buckets),
      steps_(made.steps),
      needed_(needs_input_gradient(made.part.network)),
      readers_(consumers(made.part.network)),
      output_by_(layers_.size(), none),
      gradient_by_(layers_.size()),
      bucket_of_(layers_.size(), none),
      closes_(layers_.size(), none),
      ready_by_(buckets_.size(), none),
      traded_by_(buckets_.size(), none),
      samples_(micro_batch_size(schedule, made)) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        closes_[at(buckets_[b].layers.back())] = static_cast<int>(b);
        for (const int layer : buckets_[b].layers) bucket_of_[at(layer)] = static_cast<int>(b);
    }
}

void StepMaker::run(const Order& order, int slots) {
    slots_ = slots;
    if (options_.sum.lag > 0) sum_late(true);
    for (std::size_t b = 0; b < buckets_.size() && elastic(); ++b) {
        bring_together(static_cast<int>(b), Content::differences, {});
    }
    std::size_t forwards = 0, backwards = 0;  // steps of the first item; the others are much alike
    for (const Item& item : order) {
        item_ = item;
        started_ = false;
        const std::size_t before = steps_.size();
        if (item.forward) {
            forward(chunks_[at(item.chunk)], "");
        } else {
            backward(chunks_[at(item.chunk)]);
        }
        std::size_t& first = item.forward ? forwards : backwards;
        if (first == 0) {
            first = steps_.size() - before;
            if (forwards > 0 && backwards > 0) steps_.reserve((forwards + backwards) * (order.size() / 2 + 1));
        }
        ends_.push_back(last_compute_);
        if (!item.forward && options_.asynchronous) sum_and_update();
    }
    if (!options_.asynchronous) sum_and_update();
    if (averages() && !options_.server_of.empty()) {
        for (std::size_t b = 0; b < buckets_.size(); ++b) trade(static_cast<int>(b));
        return;
    }
    for (std::size_t b = 0; b < buckets_.size() && averages() && !elastic(); ++b) {
        bring_together(static_cast<int>(b), Content::weights, {last_compute_});
    }
}

void StepMaker::sum_and_update() {
    if (options_.sum.lag == 0) sum_late(!options_.sum.overlap && options_.sum.zero < 3);
    update();
}

void StepMaker::sum_late(bool all) {
    for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
        if (all || waits_for_tie(b)) sum_gradients(b);
        if (options_.sum.zero < 2) sum_ties(b);
    }
}

// Whoever gets a piece of the sum needs both parts of a tied table before.
bool StepMaker::waits_for_tie(int b) const { return buckets_[at(b)].tie != none && options_.sum.zero >= 2; }

void StepMaker::forward(Chunk chunk, const std::string& suffix) {
    const bool again = !suffix.empty();
    for (int i = chunk.begin; i < chunk.end; ++i) {
        const Layer& layer = layers_[at(i)];
        output_by_[at(i)] = none;
        for (const int input : layer.inputs) {
            output_by_[at(i)] = std::max(output_by_[at(i)], output_by_[at(input)]);
        }
        if (const auto* op = std::get_if<Communication>(&layer.op)) {
            const bool between_stages = op->movement == Movement::send || op->movement == Movement::receive;
            if (!again || !between_stages) communicate_forward(i, *op, suffix);
        } else if (has_pass(layer.op, Pass::forward)) {
            // The loss is of no use to the backward pass: its gradient comes from its input.
            if (!again || !is_loss(layer.op)) compute(i, Pass::forward, suffix);
            output_by_[at(i)] = none;
        }
    }
}

void StepMaker::communicate_forward(int i, const Communication& op, const std::string& suffix) {
    int& output_by = output_by_[at(i)];
    if (const auto kind = forward_collective(op.movement)) {
        output_by = collective(i, *kind, Pass::forward, output_by, suffix);
    } else if (op.movement == Movement::slice) {
        compute(i, Pass::forward, suffix);
        output_by = none;
    } else if (op.movement == Movement::send) {
        send(i, op, Stream::send_activations, "send", output_by);
    } else if (op.movement == Movement::receive) {
        output_by = receive(i, op, Stream::receive_activations, "receive");
    }
}

void StepMaker::backward(Chunk chunk) {
    for (int i = chunk.begin; i < chunk.end; ++i) gradient_by_[at(i)].clear();
    if (options_.recompute != Recompute::blocks) {
        if (options_.recompute == Recompute::all) forward_again(chunk);
        return backward_of(chunk);
    }
    const std::vector<Chunk> parts = segments(network_, chunk);
    for (std::size_t i = parts.size(); i-- > 0;) {
        if (is_block(network_, parts[i])) forward_again(parts[i]);
        backward_of(parts[i]);
    }
}

// What collectives write is overwritten by the next micro-batch, whether the backward pass needs it or not.
void StepMaker::forward_again(Chunk chunk) {
    forward(chunk, ":again");
    for (int i = chunk.begin; i < chunk.end; ++i) {
        if (output_by_[at(i)] != none) made_again_.push_back(output_by_[at(i)]);
    }
}

void StepMaker::backward_of(Chunk chunk) {
    const bool last = item_.micro_batch + 1 == schedule_.micro_batches;
    for (int i = chunk.end; i-- > chunk.begin;) {
        const Layer& layer = layers_[at(i)];
        if (const auto* op = std::get_if<Communication>(&layer.op)) {
            if (exchanged_.erase(i) > 0) continue;
            if (i < sent_down_to_ || i > sent_from_) communicate_backward(i, *op);
            continue;
        }
        if (options_.recompute == Recompute::attention && std::holds_alternative<Attention>(layer.op)) {
            compute(i, Pass::forward, ":again");
        }
        const int halo = own_halo(i, chunk);
        const std::vector<Pass> passes = backward_passes(layer.op, needed_[at(i)], halo != none || exchanges_input(i));
        gather_again(i);
        for (const Pass pass : passes) {
            const bool by_server =
                pass == Pass::backward_weights && bucket_of_[at(i)] != none && sends_vectors(bucket_of_[at(i)]);
            if (!by_server) compute(i, pass, "");
            if (pass == Pass::backward_weights && preconditioned(bucket_of_[at(i)])) make_factors(bucket_of_[at(i)]);
            if (pass == Pass::backward_data && halo != none) send_halos(halo, chunk);
            if (pass == Pass::backward_data) exchange_gradients(i);
            const bool gradient = pass == Pass::backward_weights || gradients_together(layer.op);
            const bool each_time = options_.sum.zero == 3 || (options_.asynchronous && options_.sum.overlap);
            const bool now = (last && sums_beside_) || each_time;
            const int closed = gradient && now ? closes_[at(i)] : none;
            if (closed != none && !waits_for_tie(closed)) sum_gradients(closed);
        }
        if (passes.empty()) pass_on(i);  // a view
    }
}

bool StepMaker::is_halo(int i) const {
    const auto* op = std::get_if<Communication>(&layers_[at(i)].op);
    return op != nullptr && op->movement == Movement::halo;
}

int StepMaker::own_halo(int i, Chunk chunk) const {
    const bool follows = i > chunk.begin && layers_[at(i)].inputs == std::vector<int>{i - 1} && is_halo(i - 1);
    return follows && readers_[at(i - 1)].size() == 1 && has_pass(layers_[at(i)].op, Pass::backward_weights) ? i - 1
                                                                                                             : none;
}

void StepMaker::send_halos(int halo, Chunk chunk) {
    sent_from_ = sent_down_to_ = halo;
    for (int i = halo; i >= chunk.begin && is_halo(i); --i) {
        communicate_backward(i, std::get<Communication>(layers_[at(i)].op));
        sent_down_to_ = i;
        if (layers_[at(i)].inputs.front() != i - 1 || readers_[at(i - 1)].size() != 1) return;
    }
}

bool StepMaker::is_own_exchange(int input) const {
    const auto* op = std::get_if<Communication>(&layers_[at(input)].op);
    return gathers_again(layers_[at(input)]) ||
           (op != nullptr && op->movement == Movement::exchange && readers_[at(input)].size() == 1);
}

void StepMaker::gather_again(int i) {
    for (const int input : layers_[at(i)].inputs) {
        if (!gathers_again(layers_[at(input)]) || !has_pass(layers_[at(i)].op, Pass::backward_weights)) continue;
        gathered_again_ = collective(input, CollectiveKind::all_gather, Pass::forward, none, ":backward");
    }
}

bool StepMaker::exchanges_input(int i) const {
    return std::ranges::any_of(layers_[at(i)].inputs, [&](int input) { return is_own_exchange(input); });
}

void StepMaker::exchange_gradients(int i) {
    for (const int input : layers_[at(i)].inputs) {
        if (!is_own_exchange(input)) continue;
        communicate_backward(input, std::get<Communication>(layers_[at(input)].op));
        exchanged_.insert(input);
    }
}

void StepMaker::communicate_backward(int i, const Communication& op) {
    if (const auto kind = backward_collective(op.movement)) {
        if (needed_[at(i)]) give(i, collective(i, *kind, Pass::backward_data, none, ""));
    } else if (op.movement == Movement::sum) {
        pass_on(i);
    } else if (op.movement == Movement::gather) {
        if (needed_[at(i)]) compute(i, Pass::backward_data, "");
    } else if (op.movement == Movement::send && op.gradient) {
        give(i, receive(i, op, Stream::receive_gradients, "receive_gradient"));
    } else if (op.movement == Movement::receive && op.gradient) {
        sent_gradients_.push_back({item_, send(i, op, Stream::send_gradients, "send_gradient", none)});
    }
}

void StepMaker::pass_on(int i) {
    for (const int by : std::vector<int>{gradient_by_[at(i)]}) give(i, by);
}

void StepMaker::give(int i, int step) {
    for (const int input : layers_[at(i)].inputs) gradient_by_[at(input)].push_back(step);
}

void make_steps(const Schedule& schedule, const Order& order, const std::vector<Chunk>& chunks,
                const StepOptions& options, RankClass& rank_class) {
    const bool receives = std::ranges::any_of(rank_class.part.network.layers, [](const Layer& layer) {
        const auto* op = std::get_if<Communication>(&layer.op);
        return op != nullptr && (op->movement == Movement::receive || op->movement == Movement::send);
    });
    rank_class.in_flight = most_in_flight(order, static_cast<int>(chunks.size()));
    rank_class.slots = std::min(rank_class.in_flight + (receives ? 1 : 0), std::max(schedule.micro_batches, 1));
    StepMaker{schedule, chunks, options, rank_class}.run(order, rank_class.slots);
    if (options.sum.zero == 3) gather_weights(schedule.mesh, compute_type(schedule.precision), rank_class);
}

}  // namespace rehearse::schedule
