// SPDX-License-Identifier: Apache-2.0
// A normalization by a plan of cuDNN's, which takes statistics, gamma, beta and their gradients in f32.
#include <utility>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cudnn/plans.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;
using cuda::Values;

class NormByPlan final : public cuda::DeviceKernel {
public:
    NormByPlan(Engine& engine, const Problem& problem, std::shared_ptr<const Plan> plan)
        : DeviceKernel(engine, problem, norm_workspace(problem.op, problem.batch)),
          shape_(normalized(problem.op, problem.batch, false)),
          plan_(std::move(plan)),
          epsilon_(static_cast<float>(shape_.epsilon)),
          each_(whole(shape_.parameter_count())) {
        if (const auto* norm = std::get_if<BatchNorm>(&problem.op)) momentum_ = static_cast<float>(norm->momentum);
        room_ = reserve(tensors * each_ + (plan_->workspace + 3) / 4);
    }

private:
    static constexpr std::int64_t tensors = 6;  // of a number a channel, at most

    void compute(const Buffers& b) override {
        const std::int64_t count = shape_.parameter_count();
        copy(cuda::values(b.weights), own(0), count);
        if (problem().pass == Pass::forward) return forward(b, count);
        backward(b, count);
    }
    void forward(const Buffers& b, std::int64_t count) {
        copy(cuda::beyond(cuda::values(b.weights), count), own(1), count);
        bind(NormTensor::x, b.src[0].bytes());
        bind(NormTensor::y, b.dst.bytes());
        bind(NormTensor::beta, own(1).data);
        bind(NormTensor::epsilon, &epsilon_);
        if (!shape_.by_layer) {  // who counts no statistics has none, and nobody looks at what becomes of these
            if (!b.state.empty()) {
                for (const int i : {0, 1}) copy({b.state.data() + i * count, DataType::f32}, own(2 + i), count);
            }
            bind(NormTensor::momentum, &momentum_);
            bind(NormTensor::running_mean, own(2).data);
            bind(NormTensor::running_variance, own(3).data);
            bind(NormTensor::next_mean, own(4).data);
            bind(NormTensor::next_variance, own(5).data);
        }
        run_plan(b);
        if (b.state.empty()) return;
        for (const int i : {0, 1}) copy(own(4 + i), {b.state.data() + i * count, DataType::f32}, count);
    }
    void backward(const Buffers& b, std::int64_t count) {
        bind(NormTensor::x, b.src[0].bytes());
        bind(NormTensor::diff_y, b.diff_dst.bytes());
        bind(NormTensor::diff_gamma, own(1).data);
        bind(NormTensor::diff_beta, own(2).data);
        bind(NormTensor::diff_x, b.diff_src[0].empty() ? unwanted(b) : b.diff_src[0].bytes());
        run_plan(b);
        copy(own(1), cuda::values(b.diff_weights), count);
        copy(own(2), cuda::beyond(cuda::values(b.diff_weights), count), count);
    }
    void run_plan(const Buffers& b) {
        bind(NormTensor::gamma, own(0).data);
        bind(NormTensor::mean, b.workspace.data());
        bind(NormTensor::inverse, b.workspace.data() + whole(shape_.statistic_count()));
        execute(engine(), *plan_, ids_, bound_, room_ + tensors * each_);
        ids_.clear(), bound_.clear();
    }
    void bind(NormTensor id, const void* memory) {
        ids_.push_back(static_cast<std::int64_t>(id));
        bound_.push_back(const_cast<void*>(memory));
    }
    // cuDNN computes the input's gradient whoever wants it.
    void* unwanted(const Buffers& b) {
        if (unwanted_ == nullptr) unwanted_ = engine().allocate(b.src[0].size_bytes());
        return unwanted_.get();
    }
    static std::int64_t whole(std::int64_t floats) { return cuda::divide_up(floats, 4) * 4; }
    Values own(int tensor) { return {room_ + tensor * each_, DataType::f32}; }
    void copy(Values from, Values to, std::int64_t count) {
        auto task = cuda::points<cuda::CopyRuns>(count);
        task.length = count, task.from = from, task.to = to;
        engine().run(cuda::PointTask{task});
    }

    Normalized shape_;
    std::shared_ptr<const Plan> plan_;
    float epsilon_, momentum_ = 0;
    std::int64_t each_;
    float* room_ = nullptr;
    cuda::Memory unwanted_;
    std::vector<std::int64_t> ids_;
    std::vector<void*> bound_;
};

}  // namespace

std::int64_t norm_workspace(const Op& op, std::int64_t batch) {
    return 2 * cuda::divide_up(normalized(op, batch, false).statistic_count(), 4) * 4;
}

std::unique_ptr<Kernel> norm_kernel(Engine& engine, const Problem& problem, std::shared_ptr<const Plan> plan) {
    return std::make_unique<NormByPlan>(engine, problem, std::move(plan));
}

}  // namespace rehearse::kernels::cudnn
