// SPDX-License-Identifier: Apache-2.0
// backward_weights of convolutions whose tensors are channels last.
#include <algorithm>

#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/packed_launches.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

template <typename Task>
std::int64_t blocks_of(const ImplicitGemm& gemm) {
    Task task;
    static_cast<ImplicitGemm&>(task) = gemm;
    const Blocks blocks = task.blocks();
    return blocks.x * blocks.y * blocks.z;
}

// Small tiles where large ones would be mostly beyond the last row or term.
bool is_small(const ImplicitGemm& gemm) {
    return gemm.rows <= 64 || std::int64_t{gemm.term_count} * 8 <= 64 || blocks_of<SmallGradient<Float16>>(gemm) < 4;
}

// Parts of the pixels, so that each multiprocessor has two blocks (of small tiles four), of eight steps at least.
std::int64_t splits_of(const ImplicitGemm& gemm, int processors) {
    const bool small = is_small(gemm);
    const std::int64_t blocks =
        small ? blocks_of<SmallGradient<Float16>>(gemm) : blocks_of<LargeGradient<Float16>>(gemm);
    const std::int64_t wanted = divide_up((small ? 4 : 2) * processors, blocks);
    const std::int64_t steps = divide_up(column_count(gemm), 8 * LargeGradient<Float16>::depth);
    return std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(steps, 1024));
}

class PackedWeightsKernel final : public DeviceKernel {
public:
    PackedWeightsKernel(Engine& engine, const Problem& problem)
        : DeviceKernel(engine, problem), op_(volume(problem.op)) {
        const Launch launch = packed_launches(problem, true).front();
        gemm_ = launch.gemm;
        gemm_.weight_row *= 8, gemm_.weight_group *= 8;  // partial sums are counted one by one
        splits_ = splits_of(gemm_, engine.processors());
        partial_ = reserve(packed_weights_scratch(problem, engine.processors()));
        const std::size_t bytes = launch.terms.size() * sizeof(Term);
        terms_ = engine.allocate(bytes);
        engine.copy_in(terms_.get(), launch.terms.data(), bytes);
        gemm_.terms = reinterpret_cast<const Term*>(terms_.get());
    }

private:
    void compute(const Buffers& b) override {
        gemm_.source = b.src[0].bytes();
        gemm_.target = const_cast<void*>(b.diff_dst.bytes());  // read only, as packed_weights.hpp says
        require_whole({gemm_.source, gemm_.target});
        with_type(problem().type, [&]<typename Element>(Element) {
            if constexpr (sizeof(Element) == 2) {
                const auto start = [&](auto task) {
                    static_cast<ImplicitGemm&>(task) = gemm_;
                    const PackedChannels from = packed_channels(op_, problem().pass);
                    task.source_pixel = from.groups * from.vectors;
                    task.partial = partial_, task.splits = static_cast<std::int32_t>(splits_);
                    engine().run(PackedTask{task});
                };
                if (is_small(gemm_)) start(SmallGradient<Element>{});
                if (!is_small(gemm_)) start(LargeGradient<Element>{});
                AddUp<Element> sum;
                sum.partial = partial_, sum.to = b.diff_weights.bytes();
                sum.count = weight_count(op_), sum.splits = static_cast<std::int32_t>(splits_);
                engine().run(LoopTask{sum});
            }
        });
        if (op_.bias) bias_channels_last(engine(), problem(), b, weight_count(op_));
    }

    Conv op_;
    ImplicitGemm gemm_;
    Memory terms_;
    std::int64_t splits_ = 1;
    float* partial_ = nullptr;
};

}  // namespace

void bias_channels_last(Engine& engine, const Problem& problem, const Buffers& b, std::int64_t count) {
    const std::int64_t filters = volume(problem.op).filters;
    if (problem.pass == Pass::forward) {
        auto task = points<AddBias>(count_of(b.dst));
        task.src = task.dst = values(b.dst), task.bias = beyond(values(b.weights), count);
        task.channels = filters;
        engine.run(PointTask{task});
    }
    if (problem.pass != Pass::backward_weights) return;
    const Rows of{filters, count_of(b.diff_dst) / filters, 1, filters};
    sum_channels(engine, values(b.diff_dst), of, beyond(values(b.diff_weights), count));
}

std::int64_t packed_weights_scratch(const Problem& problem, int processors) {
    ImplicitGemm gemm = packed_launches(problem, true).front().gemm;
    return splits_of(gemm, processors) * weight_count(volume(problem.op));
}

std::unique_ptr<Kernel> packed_weights_kernel(Engine& engine, const Problem& problem) {
    return std::make_unique<PackedWeightsKernel>(engine, problem);
}

}  // namespace rehearse::kernels::cuda
