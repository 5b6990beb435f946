// SPDX-License-Identifier: Apache-2.0
#include "schedule/activations.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "core/gathered_again.hpp"
#include "core/index.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/precision.hpp"
#include "core/ring_attention.hpp"
#include "schedule/memory_of_software.hpp"

namespace rehearse::schedule {

namespace {

constexpr int unread = -1;

/// Held from step `born` to step `last`, both included; -1 is before the first step.
struct Span {
    int born = 0, last = 0;
    int read = unread;  // the first step that reads it once layers go backward
};

/// A tensor of one micro-batch: held once, or twice when it is computed again.
struct Tensor {
    double bytes = 0;
    std::vector<Span> held;

    bool exists() const { return !held.empty(); }
    void make(int step) { held.push_back({step, step, unread}); }
    void touch(int step) {
        if (!exists()) make(step);
        held.back().last = std::max(held.back().last, step);
    }
    /// Where layers go backward from step `turn` on.
    void note_reader(int step, int turn) {
        if (step >= turn && held.back().read == unread) held.back().read = step;
    }
};

/// Follows the steps of one rank and notes when each output and each gradient of an output is made and last read.
class Walk {
public:
    Walk(const Schedule& schedule, const RankClass& rank_class)
        : network_(rank_class.part.network),
          precision_(schedule.precision),
          habits_(schedule.methods.get<MemoryHabits>()),
          step_count_(static_cast<int>(rank_class.steps.size())) {
        needed_ = needs_input_gradient(network_);
        for (std::size_t i = 0; i < network_.layers.size(); ++i) {
            const Layer& layer = network_.layers[i];
            ring_.push_back(ring_of(schedule, rank_class.part, static_cast<int>(i)));
            stored_as_.push_back(is_view(layer.op) ? stored_as_[static_cast<std::size_t>(layer.inputs.front())] : i);
        }
        for (int m = 0; m < schedule.micro_batches; ++m) add_micro_batch(schedule, rank_class);
        turn_ = turn_of(rank_class);
        for (int i = 0; i < step_count_; ++i) {
            std::visit([&](const auto& action) { visit(i, action); },
                       rank_class.steps[static_cast<std::size_t>(i)].action);
        }
    }

    /// Bytes at each step, index 0 being before the first: of activations, and of gradients and what passes with them.
    struct Filled {
        std::vector<double> kept, passing;
    };
    Filled filled() const {
        // What is born at a step is added there and taken off after its last step.
        Filled filled{std::vector<double>(at(step_count_) + 2), std::vector<double>(at(step_count_) + 2)};
        const auto spread = [](const std::vector<Tensor>& tensors, std::vector<double>& change) {
            for (const Tensor& tensor : tensors) {
                for (const Span& span : tensor.held) {
                    change[at(span.born + 1)] += tensor.bytes;
                    change[at(span.last + 2)] -= tensor.bytes;
                }
            }
        };
        spread(outputs_, filled.kept);
        spread(kept_, filled.kept);
        spread(gradients_, filled.passing);
        spread(partial_sums_, filled.passing);
        spread(working_, filled.passing);
        std::partial_sum(filled.kept.begin(), filled.kept.end(), filled.kept.begin());
        std::partial_sum(filled.passing.begin(), filled.passing.end(), filled.passing.begin());
        return filled;
    }

    /// What is held of each layer once layers go backward, and by whom it is read then.
    LayerMemory by_layers(const RankClass& rank_class) const {
        const std::size_t layers = network_.layers.size();
        LayerMemory memory{.held = std::vector<double>(layers),
                           .taken = std::vector<double>(layers),
                           .left = std::vector<double>(layers),
                           .passing = std::vector<double>(layers),
                           .exchanged = std::vector<double>(layers)};
        for (std::size_t i = 0; i < layers; ++i) {
            for (const std::vector<Tensor>* tensors : {&outputs_, &kept_}) {
                for (const Span& span : (*tensors)[i].held) {
                    if (span.born >= turn_ || span.read == unread) continue;
                    memory.held[i] += (*tensors)[i].bytes;
                    const std::size_t furthest = layer_at(rank_class, span.read);
                    const std::size_t nearest = layer_at(rank_class, span.last);
                    for (std::size_t b = i + 1; b <= furthest; ++b) {
                        memory.taken[b] += (*tensors)[i].bytes;
                        if (b <= nearest) memory.left[b] += (*tensors)[i].bytes;
                    }
                }
            }
        }
        std::vector<double> up_to(memory.held);
        std::partial_sum(up_to.begin(), up_to.end(), up_to.begin());
        const Filled all = filled();
        for (int step = 0; step < step_count_; ++step) {
            const std::optional<std::size_t> layer = layer_of(rank_class.steps[at(step)]);
            if (!layer) continue;
            const auto* sent = std::get_if<Communicate>(&rank_class.steps[at(step)].action);
            if (sent != nullptr) {
                const Bytes buffer = static_cast<double>(buffered(*sent)) * size_of(sent->type);
                memory.exchanged[*layer] = std::max(memory.exchanged[*layer], buffer.value);
            }
            if (step < turn_) continue;
            const double beside = all.kept[at(step) + 1] + all.passing[at(step) + 1] - up_to[*layer];
            memory.passing[*layer] = std::max(memory.passing[*layer], beside);
        }
        return memory;
    }

private:
    static std::optional<std::size_t> layer_of(const Step& step) {
        if (const auto* compute = std::get_if<Compute>(&step.action)) return at(compute->layer);
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate == nullptr || communicate->of_bucket()) return std::nullopt;
        return at(communicate->layer());
    }
    static std::size_t layer_at(const RankClass& rank_class, int step) {
        return layer_of(rank_class.steps[at(step)]).value();
    }

    /// Where layers begin to go backward, or forward again for that. A whole stage that is computed again before any
    /// layer goes backward: where that is done.
    int turn_of(const RankClass& rank_class) const {
        int furthest = -1, again = step_count_;  // not yet
        for (int i = 0; i < step_count_; ++i) {
            const auto* compute = std::get_if<Compute>(&rank_class.steps[at(i)].action);
            if (compute == nullptr) continue;
            const bool forward = compute->problem.pass == Pass::forward;
            if (!forward) return anew(rank_class, again, i) ? i : std::min(again, i);
            if (compute->layer < furthest && again == step_count_) again = i;
            furthest = std::max(furthest, static_cast<int>(compute->layer));
        }
        return step_count_;
    }
    /// Whether all is computed again from step `begin` to step `end`, from the first layer that computes on.
    static bool anew(const RankClass& rank_class, int begin, int end) {
        const auto computes = [](const Step& step) { return std::holds_alternative<Compute>(step.action); };
        const auto first = std::ranges::find_if(rank_class.steps, computes);
        if (first == rank_class.steps.end() || begin >= end) return false;
        return layer_at(rank_class, begin) == layer_of(*first);
    }
    void touch(Tensor& tensor, int step) const {
        tensor.touch(step);
        tensor.note_reader(step, turn_);
    }

    /// Its output is its input's memory: nothing moves, or the sum over the ranks is made in place.
    static bool is_view(const Op& op) {
        const auto* communication = std::get_if<Communication>(&op);
        return std::holds_alternative<Flatten>(op) ||
               (communication != nullptr &&
                (communication->movement == Movement::sum || communication->movement == Movement::copy ||
                 communication->movement == Movement::send));
    }

    void add_micro_batch(const Schedule& schedule, const RankClass& rank_class) {
        const auto batch = static_cast<double>(micro_batch_size(schedule, rank_class));
        const double scale = size_of(compute_type(schedule.precision)).value * batch;
        for (const Layer& layer : network_.layers) {
            const auto count = static_cast<double>(elements(layer.output));
            const auto* input = std::get_if<Input>(&layer.op);
            const bool integers = input != nullptr && input->vocabulary > 0;
            outputs_.push_back({(integers ? sizeof(std::int32_t) * batch : scale) * count, {}});
            gradients_.push_back({scale * count, {}});
            const LossCopies copies = loss_copies(layer.op, habits_, Bytes{scale / batch});
            double kept = kept_bytes(layer.op, scale / batch, batch) + copies.kept * batch;
            const auto* pool = std::get_if<Pool>(&layer.op);
            if (pool != nullptr && pool->kind == PoolKind::max) kept += habits_.pool_index * batch * count;
            working_.push_back({copies.working * batch, {}});
            if (keeps_operand(schedule.precision, layer)) {
                kept += size_of(DataType::fp8).value * batch * static_cast<double>(elements(input_shapes(layer.op)[0]));
            }
            kept_.push_back({kept, {}});
            if (std::holds_alternative<Input>(layer.op)) outputs_.back().touch(-1);
        }
    }

    /// A product in 8 bits keeps its input as it multiplied it, not the input: what is gathered again is not kept.
    bool keeps_operand(Precision precision, const Layer& layer) const {
        return compute_type(precision, layer.op) == DataType::fp8 &&
               !gathers_again(network_.layers[static_cast<std::size_t>(layer.inputs.front())]);
    }

    std::size_t of(std::size_t layer, int micro_batch) const {
        return static_cast<std::size_t>(micro_batch) * network_.layers.size() + layer;
    }

    void visit(int step, const Compute& compute) {
        const auto index = static_cast<std::size_t>(compute.layer);
        const Layer& layer = network_.layers[index];
        const Pass pass = compute.problem.pass;
        const bool forward = pass == Pass::forward;
        Reads read = forward ? Reads{true, true} : reads(layer.op, pass);
        if (!forward && keeps_operand(precision_, layer)) read.src = false;
        const auto* norm = std::get_if<BatchNorm>(&layer.op);
        for (const int input : layer.inputs) {
            const std::size_t source = stored_as_[static_cast<std::size_t>(input)];
            const bool shortcut = norm != nullptr && input != layer.inputs.front();  // linear in it
            if (read.src && (forward || !shortcut)) touch(outputs_[of(source, compute.micro_batch)], step);
            if (pass == Pass::backward_data && trainable(source)) give_gradient(of(source, compute.micro_batch), step);
        }
        const std::size_t own = of(index, compute.micro_batch);
        const bool goes_on = ring_[index] > 1 && forward && turns_[own]++ % ring_[index] > 0;
        if (forward && !goes_on) {
            outputs_[own].make(step);
        } else if (forward) {
            touch(outputs_[own], step);
        } else if (read.dst) {
            touch(outputs_[own], step);
        }
        if (forward && !goes_on) kept_[own].make(step);
        if (!forward || goes_on) touch(kept_[own], step);
        if (!forward) working_[own].make(step);
        // The loss needs no gradient from outside; another output of the network gets one from somewhere.
        if (!forward && !is_loss(layer.op)) {
            gradients_[of(stored_as_[index], compute.micro_batch)].touch(step);
        }
    }

    void visit(int step, const Communicate& communicate) {
        if (!communicate.of_bucket()) move(step, communicate.layer(), communicate.micro_batch, communicate.pass);
    }
    void visit(int step, const Send& send) { move(step, send.layer, send.micro_batch, pass_of_send(send.layer)); }
    void visit(int step, const Recv& recv) { move(step, recv.layer, recv.micro_batch, pass_of_receive(recv.layer)); }
    void visit(int /*step*/, const auto&) {}

    Movement movement(int layer) const {
        return std::get<Communication>(network_.layers[static_cast<std::size_t>(layer)].op).movement;
    }
    Pass pass_of_send(int layer) const {
        return movement(layer) == Movement::send ? Pass::forward : Pass::backward_data;
    }
    Pass pass_of_receive(int layer) const {
        return movement(layer) == Movement::receive ? Pass::forward : Pass::backward_data;
    }

    void move(int step, int layer, int micro_batch, Pass pass) {
        const auto index = static_cast<std::size_t>(layer);
        std::vector<Tensor>& tensors = pass == Pass::forward ? outputs_ : gradients_;
        Tensor& own = tensors[of(stored_as_[index], micro_batch)];
        const bool keys = ring_[index] > 1;  // of its inputs: its output is of its computation
        if (pass == Pass::forward && stored_as_[index] == index && !keys) own.make(step);  // perhaps once more
        if (!keys || pass != Pass::forward) touch(own, step);
        for (const int input : network_.layers[index].inputs) {
            touch(tensors[of(stored_as_[static_cast<std::size_t>(input)], micro_batch)], step);
            if (keys) touch(outputs_[of(stored_as_[static_cast<std::size_t>(input)], micro_batch)], step);
        }
    }

    /// A tensor with several readers gets the sum of their gradients: all but the first are made apart, then added.
    void give_gradient(std::size_t source, int step) {
        Tensor& gradient = gradients_[source];
        if (gradient.exists()) partial_sums_.push_back({gradient.bytes, {{step, step}}});
        gradient.touch(step);
    }

    bool trainable(std::size_t layer) const {
        const Op& op = network_.layers[layer].op;
        const auto* communication = std::get_if<Communication>(&op);
        return needed_[layer] || parameters(op) > 0 || network_.layers[layer].weights_of >= 0 ||
               (communication != nullptr && communication->movement == Movement::receive && communication->gradient);
    }

    const Network& network_;
    Precision precision_;
    const MemoryHabits& habits_;
    int step_count_;
    int turn_ = 0;  // the step from which layers go backward
    std::vector<bool> needed_;
    std::vector<std::size_t> stored_as_;
    std::vector<std::int64_t> ring_;             // by layer: ranks around which keys travel
    std::map<std::size_t, std::int64_t> turns_;  // by output of those
    std::vector<Tensor> outputs_, gradients_;    // by micro-batch and layer
    std::vector<Tensor> kept_;                   // masks, slopes, probabilities: kept_bytes
    std::vector<Tensor> working_;                // what one backward step holds for itself
    std::vector<Tensor> partial_sums_;
};

}  // namespace

void add_activations(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use) {
    const Walk::Filled filled = Walk(schedule, rank_class).filled();
    for (std::size_t i = 0; i < filled.kept.size(); ++i) {
        const double most = (use.activations + use.activation_gradients).value;
        if (filled.kept[i] + filled.passing[i] <= most) continue;
        use.activations = Bytes{filled.kept[i]};
        use.activation_gradients = Bytes{filled.passing[i]};
    }
}

LayerMemory layer_memory(const Schedule& schedule, const RankClass& rank_class) {
    return Walk(schedule, rank_class).by_layers(rank_class);
}

}  // namespace rehearse::schedule
