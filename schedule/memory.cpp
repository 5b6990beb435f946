// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory.hpp"

#include <algorithm>
#include <map>

#include "core/gathered_again.hpp"
#include "core/index.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "core/ring_attention.hpp"
#include "core/weight_versions.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/memory_of_software.hpp"
#include "schedule/methods/gathers.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/methods/server_memory.hpp"

namespace rehearse::schedule {

namespace {

/// Held from step `born` to step `last`, both included; -1 is before the first step.
struct Span {
    int born = 0, last = 0;
};

/// A tensor of one micro-batch: held once, or twice when it is computed again.
struct Tensor {
    double bytes = 0;
    std::vector<Span> held;

    bool exists() const { return !held.empty(); }
    void make(int step) { held.push_back({step, step}); }
    void touch(int step) {
        if (!exists()) make(step);
        held.back().last = std::max(held.back().last, step);
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
        for (int i = 0; i < step_count_; ++i) {
            std::visit([&](const auto& action) { visit(i, action); },
                       rank_class.steps[static_cast<std::size_t>(i)].action);
        }
    }

    /// Adds the fullest step's activations and gradients to `use`.
    void add_peak(MemoryUse& use) const {
        // Index 0 is before the first step. What is born at a step is added there and taken off after its last step.
        std::vector<double> kept(static_cast<std::size_t>(step_count_) + 2), passing(kept.size());
        const auto spread = [](const std::vector<Tensor>& tensors, std::vector<double>& change) {
            for (const Tensor& tensor : tensors) {
                for (const Span& span : tensor.held) {
                    change[static_cast<std::size_t>(span.born + 1)] += tensor.bytes;
                    change[static_cast<std::size_t>(span.last + 2)] -= tensor.bytes;
                }
            }
        };
        spread(outputs_, kept);
        spread(kept_, kept);
        spread(gradients_, passing);
        spread(partial_sums_, passing);
        spread(working_, passing);
        double activations = 0, gradients = 0;
        for (std::size_t i = 0; i < kept.size(); ++i) {
            activations += kept[i];
            gradients += passing[i];
            if (activations + gradients <= (use.activations + use.activation_gradients).value) continue;
            use.activations = Bytes{activations};
            use.activation_gradients = Bytes{gradients};
        }
    }

private:
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
            if (read.src && (forward || !shortcut)) outputs_[of(source, compute.micro_batch)].touch(step);
            if (pass == Pass::backward_data && trainable(source)) give_gradient(of(source, compute.micro_batch), step);
        }
        const std::size_t own = of(index, compute.micro_batch);
        const bool goes_on = ring_[index] > 1 && forward && turns_[own]++ % ring_[index] > 0;
        if (forward && !goes_on) {
            outputs_[own].make(step);
        } else if (forward) {
            outputs_[own].touch(step);
        } else if (read.dst) {
            outputs_[own].touch(step);
        }
        if (forward && !goes_on) kept_[own].make(step);
        if (!forward || goes_on) kept_[own].touch(step);
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
        if (!keys || pass != Pass::forward) own.touch(step);
        for (const int input : network_.layers[index].inputs) {
            tensors[of(stored_as_[static_cast<std::size_t>(input)], micro_batch)].touch(step);
            if (keys) outputs_[of(stored_as_[static_cast<std::size_t>(input)], micro_batch)].touch(step);
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
    std::vector<bool> needed_;
    std::vector<std::size_t> stored_as_;
    std::vector<std::int64_t> ring_;             // by layer: ranks around which keys travel
    std::map<std::size_t, std::int64_t> turns_;  // by output of those
    std::vector<Tensor> outputs_, gradients_;    // by micro-batch and layer
    std::vector<Tensor> kept_;                   // masks, slopes, probabilities: kept_bytes
    std::vector<Tensor> working_;                // what one backward step holds for itself
    std::vector<Tensor> partial_sums_;
};

/// Elements that this rank keeps of weights, their gradients and the optimizer's numbers (ZeRO shares them).
struct Kept {
    double weights = 0, gradients = 0, updated = 0;
};

/// Counts, of each bucket, how often its gradients are reduce-scattered as soon as they are made: before those of
/// another bucket are made or scattered, beside which the whole bucket would lie. (The bucket at work is
/// MemoryUse::communication.)
std::vector<int> scattered_at_once(const RankClass& rank_class) {
    const std::vector<int> used = buckets_used(rank_class);
    std::vector<int> times(rank_class.part.buckets.size());
    int last_made = -1;
    for (std::size_t i = 0; i < used.size(); ++i) {
        const auto* compute = std::get_if<Compute>(&rank_class.steps[i].action);
        if (compute != nullptr && used[i] >= 0) {
            const Problem& problem = compute->problem;
            const bool gives = problem.pass == Pass::backward_weights ||
                               (problem.pass == Pass::backward_data && gradients_together(problem.op));
            if (gives) last_made = used[i];
        }
        const auto* action = std::get_if<Communicate>(&rank_class.steps[i].action);
        if (action == nullptr || !action->of_bucket() || action->kind != CollectiveKind::reduce_scatter) continue;
        if (action->bucket() == last_made) {
            ++times[at(action->bucket())];
        } else {
            last_made = -1;
        }
    }
    return times;
}

/// Of all buckets. Gradients that are summed once for several micro-batches, or behind those of other buckets, are kept
/// whole until then.
Kept kept_by(const Schedule& schedule, const RankClass& rank_class) {
    const std::vector<Bucket>& buckets = rank_class.part.buckets;
    std::vector<bool> updated(buckets.size()), update_shared(buckets.size());  // by this rank
    const std::vector<int> scattered = scattered_at_once(rank_class);
    const int own_micro_batches = schedule.micro_batches / rank_class.copies;
    for (const Step& step : rank_class.steps) {
        const auto* update = std::get_if<Update>(&step.action);
        if (update != nullptr) {
            updated[static_cast<std::size_t>(update->bucket)] = true;
            update_shared[static_cast<std::size_t>(update->bucket)] = update->sharded >= 0;
        }
    }
    const bool weights_shared = gathers_weights(rank_class);
    const int versions = weight_versions(rank_class);
    Kept kept;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        const auto whole = static_cast<double>(buckets[b].elements);
        const double piece =
            update_shared[b] ? whole / static_cast<double>(size_of(schedule.mesh, buckets[b].axis)) : whole;
        kept.weights += weights_shared ? piece : versions * whole;
        if (updates_directly(rank_class.part.network, buckets[b])) continue;
        kept.gradients += scattered[b] == own_micro_batches ? piece : whole;
        if (updated[b]) kept.updated += piece;
    }
    if (weights_shared) kept.weights += static_cast<double>(most_gathered(rank_class));
    return kept;
}

}  // namespace

Bytes total(const MemoryUse& use) {
    return use.weights + use.master_weights + use.gradients + use.optimizer + use.communication + use.activations +
           use.activation_gradients;
}

/// Elements of a collective's memory that are in no tensor. Of a halo: the rows from others, and as many for them. Of
/// an exchange: what is sent and what comes. Of a ring, two blocks of keys and values; backward of their gradients,
/// too, and two that have been made and wait to be added.
std::int64_t buffered(const Communicate& communicate) {
    if (communicate.algorithm.name.starts_with(shift_first))
        return communicate.elements * (communicate.pass == Pass::forward ? 1 : 3);
    if (communicate.kind == CollectiveKind::all_to_all) return 2 * communicate.elements;
    if (communicate.kind != CollectiveKind::halo) return communicate.elements;
    const Halo& halo = communicate.algorithm.halo;
    const bool lends = communicate.algorithm.name == "lend";
    const std::int64_t row = communicate.elements / (halo.size + (lends ? 1 : 2) * halo.own);
    return 2 * row * (halo.size - (halo.lent_end(0, 0) - halo.lent_begin(0, 0)));
}

MemoryUse memory_use(const Schedule& schedule, const RankClass& rank_class) {
    const Network& network = rank_class.part.network;
    const DataType update = update_type(schedule.precision);
    const Kept kept = kept_by(schedule, rank_class);
    MemoryUse use;
    use.weights = kept.weights * size_of(compute_type(schedule.precision)) +
                  static_cast<double>(network.state) * size_of(DataType::f32);
    const bool lets_go = gathers_weights(rank_class);  // of operands, too, which are made of what is gathered
    for (const Layer& layer : network.layers) {
        if (lets_go) break;
        use.weights += Bytes{static_cast<double>(operand_bytes(schedule.precision, layer.op))};
    }
    if (update != compute_type(schedule.precision)) use.master_weights = kept.updated * size_of(update);
    use.gradients = kept.gradients * size_of(wire_type(schedule.precision));
    use.optimizer = static_cast<double>(moments(schedule.optimizer)) * kept.updated * size_of(update);
    Walk(schedule, rank_class).add_peak(use);
    for (const Step& step : rank_class.steps) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate == nullptr) continue;
        const Bytes buffer = static_cast<double>(buffered(*communicate)) * size_of(communicate->type);
        use.communication = std::max(use.communication, buffer);
    }
    const Bytes copies = copied_to_buckets(schedule, rank_class) * size_of(wire_type(schedule.precision));
    use.communication = std::max(use.communication, copies);
    for (const Method* method : methods()) {
        if (method->add_memory != nullptr) method->add_memory(schedule, rank_class, use);
    }
    return use;
}

bool keeps_for_methods(const Schedule& schedule) {
    if (schedule.methods.get<Servers>().count > 0) return true;
    const MemoryUse before{Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}};
    for (const RankClass& rank_class : schedule.classes) {
        for (const Method* method : methods()) {
            MemoryUse use = before;
            if (method->add_memory != nullptr) method->add_memory(schedule, rank_class, use);
            if (total(use) > total(before)) return true;
        }
    }
    return false;
}

std::vector<NamedUse> memory_uses(const Schedule& schedule) {
    std::vector<NamedUse> all;
    for (const RankClass& rank_class : schedule.classes)
        all.push_back({rank_class.name, memory_use(schedule, rank_class)});
    if (all_devices(schedule) > ranks(schedule.mesh)) all.push_back({"server", server_memory(schedule)});
    return all;
}

MemoryUse memory_use(const Schedule& schedule) {
    MemoryUse fullest;
    for (const NamedUse& each : memory_uses(schedule)) {
        if (total(each.use) > total(fullest)) fullest = each.use;
    }
    return fullest;
}

std::vector<Tightest> tightest_of_classes(const Schedule& schedule, const Machine& machine) {
    std::vector<const DeviceClass*> smallest(schedule.classes.size());
    const std::int64_t asked = machine.classes.size() > 1 ? ranks(schedule.mesh) : 0;
    for (RankIndex rank{0}; rank < asked; ++rank) {
        const DeviceClass*& known = smallest[static_cast<std::size_t>(class_of(schedule, rank))];
        const DeviceClass& device = rehearse::class_of(machine, rank);
        if (known == nullptr || device.memory.value < known->memory.value) known = &device;
    }
    std::vector<Tightest> all;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const DeviceClass* device = smallest[c] == nullptr ? &rehearse::class_of(machine, 0) : smallest[c];
        all.push_back({static_cast<int>(c), device, memory_use(schedule, schedule.classes[c])});
    }
    return all;
}

Tightest tightest(const Schedule& schedule, const Machine& machine) {
    std::vector<Tightest> all = tightest_of_classes(schedule, machine);
    const MemoryUse server = server_memory(schedule);
    for (std::int64_t device = ranks(schedule.mesh); device < all_devices(schedule); ++device)
        all.push_back({no_class, &rehearse::class_of(machine, device), server});
    return std::ranges::max(all, {}, &Tightest::share);
}

std::vector<MemoryRow> rows(const MemoryUse& use) {
    return {{"weights", use.weights},
            {"master weights", use.master_weights},
            {"gradients", use.gradients},
            {"optimizer", use.optimizer},
            {"communication", use.communication},
            {"activations", use.activations},
            {"activation gradients", use.activation_gradients},
            {"total", total(use)}};
}

}  // namespace rehearse::schedule
