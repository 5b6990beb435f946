// SPDX-License-Identifier: Apache-2.0
// A transposed convolution by the mirrored convolution's kernel (kernels/transposed.hpp), its bias added on the device.
#include <utility>

#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

class TransposedKernel final : public DeviceKernel {
public:
    TransposedKernel(Engine& engine, const Problem& problem, std::unique_ptr<Kernel> mirrored)
        : DeviceKernel(engine, problem),
          op_(std::get<ConvTranspose>(problem.op)),
          weights_(elements(weights(problem.op)[0].shape)),
          area_(elements(output_shape(problem.op)) / op_.filters),
          mirrored_(std::move(mirrored)) {}

private:
    void compute(const Buffers& b) override {
        const auto count = static_cast<std::size_t>(weights_);
        Buffers mirror;
        if (problem().pass == Pass::forward) {
            mirror.weights = b.weights.first(count);
            mirror.diff_dst = b.src[0];
            mirror.diff_src = {b.dst};
        } else if (problem().pass == Pass::backward_data) {
            mirror.weights = b.weights.first(count);
            mirror.src = {b.diff_dst};
            mirror.dst = b.diff_src[0];
        } else {
            mirror.src = {b.diff_dst};
            mirror.diff_dst = b.src[0];
            mirror.diff_weights = b.diff_weights.first(count);
        }
        mirrored_->run(mirror);
        if (op_.bias && problem().pass == Pass::forward) add_bias(b);
        if (op_.bias && problem().pass == Pass::backward_weights) sum_bias(b);
    }
    void add_bias(const Buffers& b) {
        auto task = points<AddBias>(count_of(b.dst));
        task.src = task.dst = values(b.dst), task.bias = beyond(values(b.weights), weights_);
        task.channels = op_.filters, task.inner = area_;
        engine().run(PointTask{task});
    }
    void sum_bias(const Buffers& b) {
        const Rows of{op_.filters, problem().batch, area_, op_.filters * area_};
        sum_channels(engine(), values(b.diff_dst), of, beyond(values(b.diff_weights), weights_));
    }

    ConvTranspose op_;
    std::int64_t weights_, area_;
    std::unique_ptr<Kernel> mirrored_;
};

}  // namespace

std::unique_ptr<Kernel> transposed_kernel(Engine& engine, const Problem& problem, std::unique_ptr<Kernel> mirrored) {
    return std::make_unique<TransposedKernel>(engine, problem, std::move(mirrored));
}

}  // namespace rehearse::kernels::cuda
