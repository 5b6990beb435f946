// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory.hpp"

#include <algorithm>

#include "schedule/precision.hpp"

namespace rehearse::schedule {

namespace {

/// Which of its input and output a backward pass reads. Outputs rather than inputs where either would do (activations),
/// as PyTorch saves them; both for max pooling, as cuDNN's takes them.
struct Reads {
    bool src = false, dst = false;
};

struct DataGradientReads {
    Reads operator()(const BatchNorm&) const { return {.src = true}; }
    Reads operator()(const Lrn&) const { return {true, true}; }
    Reads operator()(const Pool2d& op) const { return {op.kind == PoolKind::max, op.kind == PoolKind::max}; }
    Reads operator()(const Activation& op) const {
        const bool from_src = op.kind == Nonlinearity::gelu;
        return {from_src, !from_src};
    }
    Reads operator()(const Softmax&) const { return {.dst = true}; }
    Reads operator()(const SoftmaxLoss&) const { return {.src = true}; }
    Reads operator()(const Unknown&) const { return {true, true}; }
    Reads operator()(const auto&) const { return {}; }  // linear in src: conv2d, matmul, add, concat, dropout, ...
};

Reads reads(const Op& op, Pass pass) {
    Reads read = pass == Pass::backward_weights ? Reads{.src = true} : std::visit(DataGradientReads{}, op);
    read.dst = read.dst || has_fused_relu(op);
    return read;
}

/// Held from step `born` to step `last`, both included; -1 is before the first step.
struct Tensor {
    double bytes = 0;
    int born = -1, last = -2;  // last < born: never held

    bool exists() const { return last >= born; }
    void touch(int step) {
        if (!exists()) born = step;
        last = std::max(last, step);
    }
};

/// Follows the steps of one rank and notes when each output and each gradient of an output is made and last read.
class Walk {
public:
    explicit Walk(const Schedule& schedule, const std::vector<Step>& steps)
        : network_(schedule.network), step_count_(static_cast<int>(steps.size())) {
        const std::size_t count = network_.layers.size();
        const auto batch = static_cast<double>(schedule.batch_per_rank);
        const double scale = size_of(compute_type(schedule.precision)).value * batch;
        needed_ = needs_input_gradient(network_);
        for (std::size_t i = 0; i < count; ++i) {
            const Layer& layer = network_.layers[i];
            const bool view = std::holds_alternative<Flatten>(layer.op);
            stored_as_.push_back(view ? stored_as_[static_cast<std::size_t>(layer.inputs.front())] : i);
            outputs_.push_back({scale * static_cast<double>(elements(layer.output))});
            gradients_.push_back(outputs_.back());
            const bool dropout = std::holds_alternative<Dropout>(layer.op);
            const double mask = static_cast<double>(elements(layer.output)) * batch;  // a byte an element
            masks_.push_back({dropout ? mask : keeps_slope(layer.op) ? outputs_.back().bytes : 0});
            if (std::holds_alternative<Input>(layer.op)) outputs_.back().touch(-1);
        }
        for (int i = 0; i < step_count_; ++i) {
            if (const auto* compute = std::get_if<Compute>(&steps[static_cast<std::size_t>(i)].action)) {
                visit(i, static_cast<std::size_t>(compute->layer), compute->problem.pass);
            }
        }
    }

    /// Adds the fullest step's activations and gradients to `use`.
    void add_peak(MemoryUse& use) const {
        // Index 0 is before the first step. What is born at a step is added there and taken off after its last step.
        std::vector<double> kept(static_cast<std::size_t>(step_count_) + 2), passing(kept.size());
        const auto spread = [](const std::vector<Tensor>& tensors, std::vector<double>& change) {
            for (const Tensor& tensor : tensors) {
                if (!tensor.exists()) continue;
                const int from = tensor.born + 1;
                const int to = tensor.last + 2;
                change[static_cast<std::size_t>(from)] += tensor.bytes;
                change[static_cast<std::size_t>(to)] -= tensor.bytes;
            }
        };
        spread(outputs_, kept);
        spread(masks_, kept);
        spread(gradients_, passing);
        spread(partial_sums_, passing);
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
    void visit(int step, std::size_t index, Pass pass) {
        const Layer& layer = network_.layers[index];
        const bool forward = pass == Pass::forward;
        const Reads read = forward ? Reads{true, true} : reads(layer.op, pass);
        const auto* norm = std::get_if<BatchNorm>(&layer.op);
        for (const int input : layer.inputs) {
            const std::size_t source = stored_as_[static_cast<std::size_t>(input)];
            const bool shortcut = norm != nullptr && input != layer.inputs.front();  // linear in it
            if (read.src && (forward || !shortcut)) outputs_[source].touch(step);
            if (pass == Pass::backward_data && trainable(source)) give_gradient(source, step);
        }
        if (read.dst) outputs_[index].touch(step);
        masks_[index].touch(step);
        // The loss needs no gradient from outside; another output of the network gets one from somewhere.
        if (!forward && !std::holds_alternative<SoftmaxLoss>(layer.op)) gradients_[index].touch(step);
    }

    /// A tensor with several readers gets the sum of their gradients: all but the first are made apart, then added.
    void give_gradient(std::size_t source, int step) {
        Tensor& gradient = gradients_[source];
        if (gradient.exists()) partial_sums_.push_back({gradient.bytes, step, step});
        gradient.touch(step);
    }

    bool trainable(std::size_t layer) const { return needed_[layer] || parameters(network_.layers[layer].op) > 0; }

    const Network& network_;
    int step_count_;
    std::vector<bool> needed_;
    std::vector<std::size_t> stored_as_;  // a Flatten is a view of its input
    std::vector<Tensor> outputs_, gradients_, partial_sums_;
    std::vector<Tensor> masks_;  // dropout's, and the slopes that a fused GELU keeps
};

}  // namespace

Bytes total(const MemoryUse& use) {
    return use.weights + use.master_weights + use.gradients + use.optimizer + use.communication + use.activations +
           use.activation_gradients;
}

MemoryUse memory_use(const Schedule& schedule) {
    const auto count = static_cast<double>(parameters(schedule.network));
    const DataType update = update_type(schedule.precision);
    MemoryUse use;
    use.weights = count * size_of(compute_type(schedule.precision)) +
                  static_cast<double>(schedule.network.state) * size_of(DataType::f32);
    if (update != compute_type(schedule.precision)) use.master_weights = count * size_of(update);
    use.gradients = count * size_of(wire_type(schedule.precision));
    use.optimizer = count * size_of(update);
    MemoryUse fullest = use;
    for (const RankClass& rank_class : schedule.classes) {
        MemoryUse of_class = use;
        Walk(schedule, rank_class.steps).add_peak(of_class);
        for (const Step& step : rank_class.steps) {
            const auto* reduce = std::get_if<AllReduceBucket>(&step.action);
            if (reduce == nullptr) continue;
            const Bytes bucket = static_cast<double>(reduce->elements) * size_of(reduce->type);
            of_class.communication = std::max(of_class.communication, bucket);
        }
        if (total(of_class) > total(fullest)) fullest = of_class;
    }
    return fullest;
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
