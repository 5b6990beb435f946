// SPDX-License-Identifier: Apache-2.0
// Which tasks each pass of a layer takes, point by point.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

class LayerKernel final : public DeviceKernel {
public:
    LayerKernel(Engine& engine, const Problem& problem, std::int64_t workspace)
        : DeviceKernel(engine, problem, workspace) {
        std::visit([this](const auto& op) { make_room(op); }, problem.op);
    }

private:
    void compute(const Buffers& b) override {
        if (problem().pass == Pass::update && !updated(problem().op)) return issue(SgdUpdate{}, b);
        std::visit(
            [&](const auto& op) {
                if constexpr (requires { issue(op, b); }) {
                    issue(op, b);
                } else {
                    require(false, "layers() supports what it has tasks for");
                }
            },
            problem().op);
    }

    bool forward() const { return problem().pass == Pass::forward; }
    std::int64_t batch() const { return problem().batch; }
    void start(auto task) { engine().run(PointTask{task}); }

    void make_room(const Embedding& op) {
        if (!forward() && problem().type != DataType::f32) room_ = reserve(parameters(Op{op}));
    }
    template <typename O>
    void make_room(const O& /*op*/) {}

    void copy(ConstView from, View to) {
        if (to.empty() || to.bytes() == from.bytes()) return;
        copy_runs(values(from), values(to), 1, count_of(from), 0, 0);
    }
    void copy_runs(Values from, Values to, std::int64_t runs, std::int64_t length, std::int64_t from_stride,
                   std::int64_t to_stride) {
        auto task = points<CopyRuns>(runs * length);
        task.from = from, task.to = to;
        task.length = length, task.from_stride = from_stride, task.to_stride = to_stride;
        start(task);
    }

    void issue(const Activation& op, const Buffers& b) {
        auto task = points<Activate>(count_of(b.src[0]));
        task.src = values(b.src[0]), task.kind = op.kind;
        if (!forward()) task.diff = values(b.diff_dst);
        task.dst = values(forward() ? b.dst : b.diff_src[0]);
        start(task);
    }

    void issue(const Add& /*op*/, const Buffers& b) {
        if (!forward()) {
            for (const View diff_src : b.diff_src) copy(b.diff_dst, diff_src);
            return;
        }
        constexpr std::size_t most = std::extent_v<decltype(AddTensors::src)>;
        for (std::size_t next = 0; next < b.src.size();) {
            auto task = points<AddTensors>(count_of(b.dst));
            task.dst = values(b.dst);
            if (next > 0) task.src[task.inputs++] = task.dst;
            while (task.inputs < narrow(most) && next < b.src.size()) task.src[task.inputs++] = values(b.src[next++]);
            start(task);
        }
    }

    void issue(const Concat& op, const Buffers& b) {
        const std::int64_t area = pixels(op), whole = elements(output_shape(Op{op}));
        std::int64_t first = 0;
        for (std::size_t i = 0; i < op.channels.size(); ++i) {
            const std::int64_t part = op.channels[i] * area;
            if (forward()) {
                copy_runs(values(b.src[i]), beyond(values(b.dst), first), batch(), part, part, whole);
            } else if (!b.diff_src[i].empty()) {
                copy_runs(beyond(values(b.diff_dst), first), values(b.diff_src[i]), batch(), part, whole, part);
            }
            first += part;
        }
    }

    void issue(const ChannelPad& op, const Buffers& b) {
        const std::int64_t area = op.height * op.width, inner = op.channels * area;
        const std::int64_t before = op.before * area, outer = inner + before + op.after * area;
        if (!forward()) {
            return copy_runs(beyond(values(b.diff_dst), before), values(b.diff_src[0]), batch(), inner, outer, inner);
        }
        auto task = points<PadChannels>(batch() * outer);
        task.src = values(b.src[0]), task.dst = values(b.dst);
        task.before = before, task.inner = inner, task.outer = outer;
        start(task);
    }

    void issue(const Flatten& /*op*/, const Buffers& b) {
        if (forward()) return copy(b.src[0], b.dst);
        copy(b.diff_dst, b.diff_src[0]);
    }

    void issue(const Bias& op, const Buffers& b) {
        std::int64_t inner = 1;
        for (std::size_t d = static_cast<std::size_t>(op.dim) + 1; d < op.shape.size(); ++d) inner *= op.shape[d];
        const std::int64_t channels = op.shape[static_cast<std::size_t>(op.dim)];
        const std::int64_t count = batch() * elements(op.shape);
        if (problem().pass == Pass::backward_data) return copy(b.diff_dst, b.diff_src[0]);
        if (!forward()) {
            const Rows of{channels, count / (channels * inner), inner, channels * inner};
            return sum_channels(engine(), values(b.diff_dst), of, values(b.diff_weights));
        }
        auto task = points<AddBias>(count);
        task.src = values(b.src[0]), task.bias = values(b.weights), task.dst = values(b.dst);
        task.inner = inner, task.channels = channels;
        start(task);
    }

    void issue(const Dropout& op, const Buffers& b) {
        auto task = points<DropOut>(batch() * elements(op.shape));
        task.factors = b.workspace.data();
        if (!forward()) task.diff = values(b.diff_dst), task.dst = values(b.diff_src[0]);
        if (forward()) task.src = values(b.src[0]), task.dst = values(b.dst);
        task.seed = b.seed;
        task.kept_below = static_cast<std::uint64_t>(op.keep * 0x1p53);
        task.factor = static_cast<float>(1 / op.keep);
        task.sample = elements(op.shape);
        task.whole = b.sample_elements > 0 ? b.sample_elements : elements(op.shape);
        task.first = b.first_sample * task.whole + b.first_element;
        task.places = places_there(b.places);
        start(task);
    }

    void issue(const Pool& op, const Buffers& b) {
        const Shape out = output_shape(Op{op});
        const Window& w = op.window;
        auto task = points<Pooling>(forward() ? count_of(b.dst) : count_of(b.diff_src[0]));
        if (!b.src.empty()) task.src = values(b.src[0]);  // an average's gradient does not look at it
        if (!forward()) task.diff = values(b.diff_dst);
        task.dst = values(forward() ? b.dst : b.diff_src[0]);
        const auto slide = [](std::int64_t in, std::int64_t made, std::int64_t kernel, std::int64_t stride,
                              std::int64_t pad, std::int64_t dilation) {
            return Slide{narrow(in),       narrow(made),   narrow(kernel), narrow(pad),
                         narrow(dilation), narrow(stride), stride};
        };
        if (op.depth > 0) task.d = slide(op.depth, out[1], w.kernel_d, w.stride_d, w.pad_front, w.dilation_d);
        task.h = slide(op.height, out[out.size() - 2], w.kernel_h, w.stride_h, w.pad_top, w.dilation_h);
        task.w = slide(op.width, out.back(), w.kernel_w, w.stride_w, w.pad_left, w.dilation_w);
        const auto counted = [&](const Slide& along) { return forward() ? along.out : along.in; };
        task.depth = counted(task.d), task.height = counted(task.h), task.width = counted(task.w);
        task.largest = op.kind == PoolKind::max, task.count_padding = op.count_padding;
        start(task);
    }

    void issue(const Embedding& op, const Buffers& b) {
        auto task = points<PickRows>(batch() * op.tokens * op.width);
        task.ids = b.indices.data(), task.width = op.width, task.tokens = op.tokens, task.vocabulary = op.vocabulary;
        task.positions = op.positions, task.segments = op.segments, task.first_row = b.first_row;
        if (forward()) {
            task.weights = values(b.weights), task.dst = values(b.dst);
            return start(task);
        }
        const bool direct = b.diff_weights.type() == DataType::f32;
        const Values sums = direct ? values(b.diff_weights) : Values{room_, DataType::f32};
        auto zero = points<Zero>(count_of(b.diff_weights));
        zero.to = sums;
        start(zero);
        task.diff = values(b.diff_dst), task.sums = static_cast<float*>(sums.data);
        start(task);
        if (!direct) copy_runs(sums, values(b.diff_weights), 1, count_of(b.diff_weights), 0, 0);
    }

    void issue(const SgdUpdate& /*op*/, const Buffers& b) {
        auto task = points<SgdStep>(count_of(b.weights));
        task.weights = values(b.weights), task.diff = values(b.diff_weights), task.momentum = values(b.momentum);
        task.copy = values(b.weights_copy);
        task.rate = b.learning_rate, task.factor = b.momentum_factor, task.decay = b.weight_decay;
        start(task);
    }

    void issue(const AdamUpdate& /*op*/, const Buffers& b) {
        auto task = points<AdamStep>(count_of(b.weights));
        task.weights = values(b.weights), task.diff = values(b.diff_weights), task.momentum = values(b.momentum);
        task.second_moment = values(b.second_moment), task.copy = values(b.weights_copy);
        task.rate = b.learning_rate, task.factor = b.momentum_factor, task.decay = b.weight_decay;
        task.second_factor = b.second_factor, task.epsilon = b.epsilon;
        const auto corrected = [&](float factor) {
            return static_cast<float>(1 /
                                      (1 - std::pow(static_cast<double>(factor), static_cast<double>(b.update_count))));
        };
        task.first = corrected(b.momentum_factor), task.second = corrected(b.second_factor);
        start(task);
    }

    // Copied when they are others than before: a layer's stay the same.
    const std::int64_t* places_there(std::span<const std::int64_t> places) {
        if (places.empty()) return nullptr;
        if (places.data() != places_.data() || places.size() != places_.size()) {
            const Memory memory = engine().allocate(places.size_bytes());
            engine().copy_in(memory.get(), places.data(), places.size_bytes());
            places_memory_ = memory;  // whoever read those before has ended with the copy
            places_ = places;
        }
        return reinterpret_cast<const std::int64_t*>(places_memory_.get());
    }

    std::span<const std::int64_t> places_;
    Memory places_memory_;
    float* room_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> layer_kernel(Engine& engine, const Problem& problem, std::int64_t workspace) {
    if (std::holds_alternative<Attention>(problem.op)) return attention_kernel(engine, problem, workspace);
    if (std::holds_alternative<LambUpdate>(problem.op)) return lamb_kernel(engine, problem);
    if (auto kernel = image_kernel(engine, problem)) return kernel;
    if (auto kernel = row_kernel(engine, problem, workspace)) return kernel;
    return std::make_unique<LayerKernel>(engine, problem, workspace);
}

}  // namespace rehearse::kernels::cuda
