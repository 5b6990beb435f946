// SPDX-License-Identifier: Apache-2.0
// A convolution by a plan of cuDNN's; the bias, which it leaves out, by tasks of ours.
#include <utility>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cudnn/plans.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;
using cuda::Memory;

// A tensor's memory for cuDNN, which takes whole multiples of 16 bytes only: weights begin where those before them end.
class Aligned {
public:
    void* of(Engine& engine, void* memory, std::size_t bytes) {
        if (reinterpret_cast<std::uintptr_t>(memory) % 16 == 0) return memory;
        if (room_ == nullptr) room_ = engine.allocate(bytes);
        return room_.get();
    }

private:
    Memory room_;
};

class Convolution final : public cuda::DeviceKernel {
public:
    Convolution(Engine& engine, const Problem& problem, std::shared_ptr<const Plan> plan, bool channels_last)
        : DeviceKernel(engine, problem),
          op_(cuda::volume(problem.op)),
          plan_(std::move(plan)),
          channels_last_(channels_last) {
        if (plan_->workspace > 0) room_ = reserve((plan_->workspace + 3) / 4);
    }

private:
    void compute(const Buffers& b) override {
        const bool forward = problem().pass == Pass::forward, weights = problem().pass == Pass::backward_weights;
        const std::int64_t count = cuda::weight_count(op_);
        const cuda::Values w = cuda::values(weights ? ConstView(b.diff_weights) : ConstView(b.weights));
        const cuda::Values aligned{aligned_.of(engine(), w.data, static_cast<std::size_t>(count) * 4), w.type};
        if (!weights && aligned.data != w.data) copy(w, aligned, count);
        const void* x = problem().pass == Pass::backward_data ? b.diff_src[0].bytes() : b.src[0].bytes();
        const void* y = forward ? b.dst.bytes() : b.diff_dst.bytes();
        execute(engine(), *plan_, {convolution_ids.begin(), convolution_ids.end()},
                {const_cast<void*>(x), aligned.data, const_cast<void*>(y)}, room_);
        if (weights && aligned.data != w.data) copy(aligned, w, count);
        if (!op_.bias) return;
        if (channels_last_) return cuda::bias_channels_last(engine(), problem(), b, count);
        if (forward) cuda::add_bias(engine(), problem(), b, count);
        if (weights) cuda::sum_bias(engine(), problem(), b, count);
    }
    void copy(cuda::Values from, cuda::Values to, std::int64_t count) {
        cuda::CopyRuns task;
        task.count = task.length = count;
        task.from = from, task.to = to;
        engine().run(cuda::PointTask{task});
    }

    Conv op_;
    std::shared_ptr<const Plan> plan_;
    Aligned aligned_;
    float* room_ = nullptr;
    bool channels_last_;
};

}  // namespace

std::unique_ptr<Kernel> convolution_kernel(Engine& engine, const Problem& problem, std::shared_ptr<const Plan> plan,
                                           bool channels_last) {
    return std::make_unique<Convolution>(engine, problem, std::move(plan), channels_last);
}

}  // namespace rehearse::kernels::cudnn
