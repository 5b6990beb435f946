// SPDX-License-Identifier: Apache-2.0
#include "schedule/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "schedule/blocks.hpp"
#include "schedule/gathers.hpp"

namespace rehearse::schedule {

namespace {

constexpr int none = -1;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// The gradient of the weights first, as Caffe does: its bucket is ready one pass earlier, and the layer's input can be
/// let go before the gradient of that input is made. PyTorch hands out both at once, after the data's. The data's first
/// where it is rows for other ranks, which it can send meanwhile.
std::vector<Pass> backward_passes(const Op& op, bool needs_input_gradient, bool data_first) {
    std::vector<Pass> passes;
    if (has_pass(op, Pass::backward_weights)) passes.push_back(Pass::backward_weights);
    if (has_pass(op, Pass::backward_data) && (needs_input_gradient || gradients_together(op))) {
        passes.insert(data_first ? passes.begin() : passes.end(), Pass::backward_data);
    }
    return passes;
}

class Maker {
public:
    Maker(const Schedule& schedule, const std::vector<Chunk>& chunks, const StepOptions& options, RankClass& made)
        : schedule_(schedule),
          chunks_(chunks),
          options_(options),
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
          ready_by_(buckets_.size(), none) {
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            closes_[at(buckets_[b].layers.back())] = static_cast<int>(b);
            for (const int layer : buckets_[b].layers) bucket_of_[at(layer)] = static_cast<int>(b);
        }
    }

    void run(const Order& order, int slots) {
        slots_ = slots;
        for (std::size_t b = 0; b < buckets_.size() && options_.sum.lag > 0; ++b) sum_gradients(static_cast<int>(b));
        for (const Item& item : order) {
            item_ = item;
            started_ = false;
            if (item.forward) {
                forward(chunks_[at(item.chunk)], "");
            } else {
                backward(chunks_[at(item.chunk)]);
            }
            ends_.push_back(last_compute_);
            if (!item.forward && options_.asynchronous) sum_and_update();
        }
        if (!options_.asynchronous) sum_and_update();
    }

private:
    /// What is summed while the backward pass goes on has been by now.
    void sum_and_update() {
        const bool late = !options_.sum.overlap && options_.sum.zero < 3;
        for (std::size_t b = 0; b < buckets_.size() && late; ++b) sum_gradients(static_cast<int>(b));
        update();
    }

    // Forward -------------------------------------------------------------------------------------------------------

    void forward(Chunk chunk, const std::string& suffix) {
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

    void communicate_forward(int i, const Communication& op, const std::string& suffix) {
        switch (op.movement) {
            case Movement::copy:
                return;
            case Movement::sum:
                output_by_[at(i)] = collective(i, CollectiveKind::all_reduce, Pass::forward, output_by_[at(i)], suffix);
                return;
            case Movement::gather:
            case Movement::spread:
                output_by_[at(i)] = collective(i, CollectiveKind::all_gather, Pass::forward, output_by_[at(i)], suffix);
                return;
            case Movement::scatter:
                output_by_[at(i)] =
                    collective(i, CollectiveKind::reduce_scatter, Pass::forward, output_by_[at(i)], suffix);
                return;
            case Movement::halo:
                output_by_[at(i)] = collective(i, CollectiveKind::halo, Pass::forward, output_by_[at(i)], suffix);
                return;
            case Movement::slice:
                compute(i, Pass::forward, suffix);
                output_by_[at(i)] = none;
                return;
            case Movement::send:
                point_to_point<Send>(i, op, Stream::send_activations, "send", output_by_[at(i)]);
                return;
            case Movement::receive:
                output_by_[at(i)] = point_to_point<Recv>(i, op, Stream::receive_activations, "receive", none);
        }
    }

    // Backward ------------------------------------------------------------------------------------------------------

    void backward(Chunk chunk) {
        for (int i = chunk.begin; i < chunk.end; ++i) gradient_by_[at(i)].clear();
        if (options_.recompute != Recompute::blocks) {
            if (options_.recompute == Recompute::all) forward(chunk, ":again");
            return backward_of(chunk);
        }
        const std::vector<Chunk> parts = segments(network_, chunk);
        for (std::size_t i = parts.size(); i-- > 0;) {
            if (is_block(network_, parts[i])) forward(parts[i], ":again");
            backward_of(parts[i]);
        }
    }

    void backward_of(Chunk chunk) {
        const bool last = item_.micro_batch + 1 == schedule_.micro_batches;
        for (int i = chunk.end; i-- > chunk.begin;) {
            const Layer& layer = layers_[at(i)];
            if (const auto* op = std::get_if<Communication>(&layer.op)) {
                if (i < sent_down_to_ || i > sent_from_) communicate_backward(i, *op);
                continue;
            }
            if (options_.recompute == Recompute::attention && std::holds_alternative<Attention>(layer.op)) {
                compute(i, Pass::forward, ":again");
            }
            const int halo = own_halo(i, chunk);
            const std::vector<Pass> passes = backward_passes(layer.op, needed_[at(i)], halo != none);
            for (const Pass pass : passes) {
                compute(i, pass, "");
                if (pass == Pass::backward_data && halo != none) send_halos(halo, chunk);
                const bool gradient = pass == Pass::backward_weights || gradients_together(layer.op);
                const bool each_time = options_.sum.zero == 3 || (options_.asynchronous && options_.sum.overlap);
                const bool now = (last && sums_beside_) || each_time;
                if (gradient && now && closes_[at(i)] != none) sum_gradients(closes_[at(i)]);
            }
            if (passes.empty()) pass_on(i);  // a view
        }
    }

    bool is_halo(int i) const {
        const auto* op = std::get_if<Communication>(&layers_[at(i)].op);
        return op != nullptr && op->movement == Movement::halo;
    }

    /// The halo right before a layer with weights, that nobody else reads.
    int own_halo(int i, Chunk chunk) const {
        const bool follows = i > chunk.begin && layers_[at(i)].inputs == std::vector<int>{i - 1} && is_halo(i - 1);
        return follows && readers_[at(i - 1)].size() == 1 && has_pass(layers_[at(i)].op, Pass::backward_weights) ? i - 1
                                                                                                                 : none;
    }

    /// Of one dimension after the other: gradients of the rows that were lent.
    void send_halos(int halo, Chunk chunk) {
        sent_from_ = sent_down_to_ = halo;
        for (int i = halo; i >= chunk.begin && is_halo(i); --i) {
            communicate_backward(i, std::get<Communication>(layers_[at(i)].op));
            sent_down_to_ = i;
            if (layers_[at(i)].inputs.front() != i - 1 || readers_[at(i - 1)].size() != 1) return;
        }
    }

    void communicate_backward(int i, const Communication& op) {
        switch (op.movement) {
            case Movement::halo:
                if (needed_[at(i)]) give(i, collective(i, CollectiveKind::halo, Pass::backward_data, none, ""));
                return;
            case Movement::sum:
                return pass_on(i);
            case Movement::copy:
                if (needed_[at(i)]) give(i, collective(i, CollectiveKind::all_reduce, Pass::backward_data, none, ""));
                return;
            case Movement::gather:
                if (needed_[at(i)]) compute(i, Pass::backward_data, "");
                return;
            case Movement::spread:
                if (needed_[at(i)])
                    give(i, collective(i, CollectiveKind::reduce_scatter, Pass::backward_data, none, ""));
                return;
            case Movement::slice:
            case Movement::scatter:
                if (needed_[at(i)]) give(i, collective(i, CollectiveKind::all_gather, Pass::backward_data, none, ""));
                return;
            case Movement::send:
                if (!op.gradient) return;
                return give(i, point_to_point<Recv>(i, op, Stream::receive_gradients, "receive_gradient", none));
            case Movement::receive:
                if (!op.gradient) return;
                sent_gradients_.push_back(
                    {item_, point_to_point<Send>(i, op, Stream::send_gradients, "send_gradient", none)});
        }
    }

    /// The gradient of the inputs is there when that of the output is.
    void pass_on(int i) {
        for (const int by : std::vector<int>{gradient_by_[at(i)]}) give(i, by);
    }

    void give(int i, int step) {
        for (const int input : layers_[at(i)].inputs) gradient_by_[at(input)].push_back(step);
    }

    // Steps ---------------------------------------------------------------------------------------------------------

    std::string name_of(int i, std::string_view what, std::string_view suffix) const {
        std::string name = fmt::format("{}:{}{}", layers_[at(i)].name, what, suffix);
        if (schedule_.micro_batches > 1) name += fmt::format("#{}", item_.micro_batch);
        return name;
    }

    int append(std::string name, Stream stream, Action action, std::vector<int> after) {
        std::erase_if(after, [&](int step) { return step == none || steps_[at(step)].stream == stream; });
        std::ranges::sort(after);
        after.erase(std::unique(after.begin(), after.end()), after.end());
        steps_.push_back({std::move(name), stream, std::move(action), std::move(after)});
        return static_cast<int>(steps_.size()) - 1;
    }

    void compute(int i, Pass pass, std::string_view suffix) {
        std::vector<int> after;
        if (pass == Pass::forward) {
            for (const int input : layers_[at(i)].inputs) after.push_back(output_by_[at(input)]);
        } else {
            after = gradient_by_[at(i)];
            // It adds its part to what came to its inputs from elsewhere.
            for (const int input : layers_[at(i)].inputs) {
                const std::vector<int>& came = gradient_by_[at(input)];
                if (pass == Pass::backward_data) after.insert(after.end(), came.begin(), came.end());
            }
        }
        const bool gives =
            pass == Pass::backward_weights || (pass != Pass::forward && gradients_together(layers_[at(i)].op));
        if (gives && options_.sum.zero == 3) after.push_back(ready_by_[at(bucket_of_[at(i)])]);
        // What this item overwrites must have left.
        if (!started_ && !item_.forward) after.push_back(last_gradient_sent());
        started_ = true;
        const Op& op = layers_[at(i)].op;
        const Problem problem{op, pass, micro_batch_size(schedule_), compute_type(schedule_.precision, op)};
        last_compute_ = append(name_of(i, to_string(pass), suffix), Stream::compute,
                               Compute{i, problem, item_.micro_batch}, std::move(after));
    }

    /// The gradient that lies in the slot of this item's micro-batch, until it is sent.
    int last_gradient_sent() const {
        int step = none;
        for (const auto& [item, sent] : sent_gradients_) {
            if (item.chunk == item_.chunk && item.micro_batch <= item_.micro_batch - slots_) step = sent;
        }
        return step;
    }

    /// Elements of the memory that a layer's collective works on, of one sample.
    std::int64_t elements_of(int i, Pass pass) const {
        const auto& op = std::get<Communication>(layers_[at(i)].op);
        const bool joins = op.movement == Movement::gather || op.movement == Movement::spread;
        if (op.movement != Movement::halo) return elements(joins ? layers_[at(i)].output : op.shape);
        const std::int64_t row = elements(op.shape) / op.halo.own;
        return row * (pass == Pass::forward ? op.halo.own + op.halo.size : op.halo.size + 2 * op.halo.own);
    }

    Algorithm algorithm_of(int i, CollectiveKind kind, Pass pass) const {
        const auto& op = std::get<Communication>(layers_[at(i)].op);
        if (kind == CollectiveKind::halo) {
            return {.name = pass == Pass::forward ? "lend" : "return", .halo = op.halo};
        }
        return kind == CollectiveKind::all_reduce ? options_.tensor : Algorithm{};
    }

    int collective(int i, CollectiveKind kind, Pass pass, int needs, std::string_view suffix) {
        const auto& op = std::get<Communication>(layers_[at(i)].op);
        Communicate action{.kind = kind,
                           .axis = axis_index(schedule_.mesh, op.axis),
                           .elements = micro_batch_size(schedule_) * elements_of(i, pass),
                           .type = compute_type(schedule_.precision),
                           .algorithm = algorithm_of(i, kind, pass),
                           .layer = i,
                           .pass = pass,
                           .micro_batch = item_.micro_batch};
        std::vector<int> after{last_compute_, needs};
        if (pass != Pass::forward) after.insert(after.end(), gradient_by_[at(i)].begin(), gradient_by_[at(i)].end());
        const std::string what =
            pass == Pass::forward ? std::string{pass_of(kind)} : "gradient_" + std::string{pass_of(kind)};
        return append(name_of(i, what, suffix), Stream::communication, action, std::move(after));
    }

    template <typename Message>
    int point_to_point(int i, const Communication& op, Stream stream, std::string_view what, int needs) {
        const bool sends = std::is_same_v<Message, Send>;
        const auto count = static_cast<double>(micro_batch_size(schedule_) * elements(op.shape));
        const Message action{axis_index(schedule_.mesh, op.axis), op.offset,
                             count * size_of(compute_type(schedule_.precision)), i, item_.micro_batch};
        std::vector<int> after{needs};
        if (sends) {
            after.push_back(last_compute_);
            const auto& gradients = gradient_by_[at(i)];
            if (!item_.forward) after.insert(after.end(), gradients.begin(), gradients.end());
        } else if (ends_.size() >= 2) {
            after.push_back(ends_[ends_.size() - 2]);
        }
        return append(name_of(i, what, ""), stream, action, std::move(after));
    }

    void sum_gradients(int b) {
        const GradientSum& sum = options_.sum;
        if (sharing(b) == 1) return;
        const CollectiveKind kind = sum.zero >= 2 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
        ready_by_[at(b)] = bucket_collective(b, kind, {last_compute_});
    }

    /// In the name of a step that a bucket has once a micro-batch.
    std::string which_time() const {
        const bool several = (options_.sum.zero == 3 || options_.asynchronous) && schedule_.micro_batches > 1;
        return several ? fmt::format("#{}", item_.micro_batch) : "";
    }

    /// Ranks that have the weights of a bucket.
    std::int64_t sharing(int b) const {
        return buckets_[at(b)].axis == none ? 1 : size_of(schedule_.mesh, buckets_[at(b)].axis);
    }

    int bucket_collective(int b, CollectiveKind kind, std::vector<int> after) {
        const auto chosen = options_.sum.algorithms.find(buckets_[at(b)].axis);
        const bool choice = kind == CollectiveKind::all_reduce && chosen != options_.sum.algorithms.end();
        const bool weights = kind == CollectiveKind::all_gather;
        const Communicate action{.kind = kind,
                                 .axis = buckets_[at(b)].axis,
                                 .elements = buckets_[at(b)].elements,
                                 .type = weights ? compute_type(schedule_.precision) : options_.sum.wire,
                                 .algorithm = choice ? chosen->second : Algorithm{},
                                 .bucket = b,
                                 .micro_batch = options_.sum.lag > 0 ? schedule_.micro_batches - 1 : item_.micro_batch};
        return append(fmt::format("bucket{}:{}{}", b, pass_of(kind), which_time()), Stream::communication, action,
                      std::move(after));
    }

    void update() {
        // Whether any gradient has overflowed decides about all updates.
        std::vector<int> all_sums;
        if (scales_loss(schedule_.precision)) all_sums = ready_by_;
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            const std::int64_t ranks = options_.sum.zero > 0 ? sharing(static_cast<int>(b)) : 1;
            const std::int64_t count = (buckets_[b].elements + ranks - 1) / ranks;
            const Op op = update_op(schedule_.optimizer, count, tensors(network_, buckets_[b]));
            const Problem problem{op, Pass::update, 1, update_type(schedule_.precision)};
            std::vector<int> after = b == 0 ? all_sums : std::vector<int>{};
            after.push_back(ready_by_[b]);
            const int step =
                append(fmt::format("bucket{}:update{}", b, options_.asynchronous ? which_time() : ""), Stream::compute,
                       Update{static_cast<int>(b), problem, ranks > 1 ? buckets_[b].axis : none}, after);
            if (ranks > 1 && options_.sum.zero < 3)
                bucket_collective(static_cast<int>(b), CollectiveKind::all_gather, {step});
        }
    }

    const Schedule& schedule_;
    const std::vector<Chunk>& chunks_;
    const StepOptions& options_;
    const Network& network_;
    const std::vector<Layer>& layers_;
    const std::vector<Bucket>& buckets_;
    std::vector<Step>& steps_;
    std::vector<bool> needed_;
    std::vector<std::vector<int>> readers_;
    int sent_from_ = none, sent_down_to_ = none;  // halos whose gradients are on their way
    Item item_;
    int slots_ = 1;
    bool started_ = false;                                                    // this item has computed something
    const bool sums_beside_ = options_.sum.overlap && options_.sum.lag == 0;  // the backward pass that makes them
    int last_compute_ = none;                                                 // step
    std::vector<int> ends_;                                                   // the last compute step of each item
    // Of this item, by layer: steps of other streams that give the output, or a part of its gradient.
    std::vector<int> output_by_;
    std::vector<std::vector<int>> gradient_by_;
    std::vector<int> bucket_of_;  // by layer
    std::vector<int> closes_;     // by layer: the bucket whose last gradient it makes
    std::vector<int> ready_by_;   // by bucket: the step that sums its gradients
    std::vector<std::pair<Item, int>> sent_gradients_;
};

}  // namespace

void make_steps(const Schedule& schedule, const Order& order, const std::vector<Chunk>& chunks,
                const StepOptions& options, RankClass& rank_class) {
    const bool receives = std::ranges::any_of(rank_class.part.network.layers, [](const Layer& layer) {
        const auto* op = std::get_if<Communication>(&layer.op);
        return op != nullptr && (op->movement == Movement::receive || op->movement == Movement::send);
    });
    rank_class.slots = most_in_flight(order, static_cast<int>(chunks.size())) + (receives ? 1 : 0);
    rank_class.slots = std::min(rank_class.slots, std::max(schedule.micro_batches, 1));
    Maker{schedule, chunks, options, rank_class}.run(order, rank_class.slots);
    if (options.sum.zero == 3) gather_weights(schedule.mesh, wire_type(schedule.precision), rank_class);
}

}  // namespace rehearse::schedule
