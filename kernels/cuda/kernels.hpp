// SPDX-License-Identifier: Apache-2.0
// The kernels behind the backends of convolution.cpp: which tasks a pass takes, with which buffers.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.hpp"
#include "kernels/buffers.hpp"
#include "kernels/cuda/engine.hpp"
#include "kernels/cuda/fft.hpp"
#include "kernels/cuda/fp8.hpp"
#include "kernels/cuda/norm_sums.hpp"

namespace rehearse::kernels::cuda {

/// Ordinary cores sum f32; tensor cores 16-bit types and, rounded to TF32, f32.
enum class Cores { ordinary, tensor };

/// A convolution of an image as that of the volume of one plane that it is, a product as the 1x1 convolution of images
/// of one pixel.
Conv volume(const Op& op);
/// Of it: a product has one a row.
std::int64_t images(const Problem& problem);
/// Without the bias, which lies behind them.
std::int64_t weight_count(const Conv& op);

/// Memory of at least so many bytes for one kernel at a time: those of a stream run one after the other, and share it.
Memory shared_scratch(Engine& engine, std::size_t bytes);

/// Memory of so many bytes for tasks that follow one another in a stream: it stays, and the next one takes it.
float* kept_scratch(Engine& engine, std::size_t bytes);

/// to[row] = sum of the row's values, f32 sums in a fixed order: a bias's gradient.
void sum_channels(Engine& engine, Values values, const Rows& of, Values to);
/// The sums that a task's blocks begin, in as many parts as fill the GPU; f32 `sums` and `to` {kinds, columns}.
void run_in_parts(Engine& engine, GradientSums task);
void run_in_parts(Engine& engine, ColumnSums task);
/// `blocks` of them fill a few of the GPU's processors: parts of `size`, of at least `least` each.
Parts parts_for(Engine& engine, std::int64_t blocks, std::int64_t size, std::int64_t least);

/// A matrix in 8 bits, and before it what scales it: `room` has fp8_parts floats, which a block's threads can add up.
inline constexpr int fp8_parts = ToFp8::threads;
void run_to_fp8(Engine& engine, ToFp8 task, float* room);

/// Checks the buffers, leaves out a gradient that nobody wants.
class DeviceKernel : public Kernel {
public:
    DeviceKernel(Engine& engine, const Problem& problem, std::int64_t workspace = 0)
        : engine_(engine), problem_(problem), sizes_(problem, workspace) {}
    void run(const Buffers& buffers) final {
        sizes_.check(buffers);
        const bool only_data = problem_.pass == Pass::backward_data && !gradients_together(problem_.op);
        if (only_data && !wants_input_gradient(buffers)) return;
        compute(buffers);
    }
    Bytes scratch() const final { return Bytes{static_cast<double>(scratch_bytes_)}; }

protected:
    float* reserve(std::int64_t floats) {
        scratch_bytes_ = static_cast<std::size_t>(floats) * sizeof(float);
        scratch_ = shared_scratch(engine_, scratch_bytes_);
        return reinterpret_cast<float*>(scratch_.get());
    }
    Engine& engine() { return engine_; }
    const Problem& problem() const { return problem_; }

private:
    virtual void compute(const Buffers& buffers) = 0;

    Engine& engine_;
    Problem problem_;
    BufferSizes sizes_;
    Memory scratch_;
    std::size_t scratch_bytes_ = 0;
};

/// forward and backward_data by sums over terms, tile by tile or, `direct`, term by term.
std::unique_ptr<Kernel> sums_kernel(Engine& engine, const Problem& problem, bool direct, Cores cores);
/// backward_weights: partial sums of pixels, their sum, and the bias's.
std::unique_ptr<Kernel> weights_kernel(Engine& engine, const Problem& problem, Cores cores);
/// Floats of the partial sums.
std::int64_t weights_scratch(const Problem& problem, int processors);

/// The bias behind `count` weights is added to dst; its gradient, the sums of diff_dst over images and pixels.
void add_bias(Engine& engine, const Problem& problem, const Buffers& buffers, std::int64_t count);
void sum_bias(Engine& engine, const Problem& problem, const Buffers& buffers, std::int64_t count);
/// Of tensors that are channels last, whatever of these the pass has.
void bias_channels_last(Engine& engine, const Problem& problem, const Buffers& buffers, std::int64_t count);
/// In how many parts a WeightGradient of these takes its pixels.
std::int64_t weight_splits(const ImplicitGemm& gemm, int processors);

/// m of 2 or 4.
std::unique_ptr<Kernel> winograd_kernel(Engine& engine, const Problem& problem, int m);
/// As the tasks see it: backward_data is a convolution of the output's gradient by mirrored weights, backward_weights
/// has the forward pass's.
WinogradShape winograd_shape(const Conv& op, Pass pass, std::int64_t batch, int m);
/// Floats of weights (or of the sums that become their gradient), source and products, all transformed.
std::int64_t winograd_scratch(const Problem& problem, int m, int processors);

/// How a 16-bit convolution whose channels are laid together is run: by wgmma or by mma.sync; on tensors that are
/// channels last (kernels/channels_last.hpp), which mostly lie so already, or first.
struct Packing {
    bool by_warpgroups = false, channels_last = false;
};
/// forward and backward_data.
std::unique_ptr<Kernel> packed_kernel(Engine& engine, const Problem& problem, Packing packing);
/// Floats of the sources and weights as they are laid.
std::int64_t packed_scratch(const Problem& problem, bool channels_last);
/// backward_weights of tensors that are channels last, a group's channels and filters being whole vectors.
std::unique_ptr<Kernel> packed_weights_kernel(Engine& engine, const Problem& problem);
/// Floats of the partial sums.
std::int64_t packed_weights_scratch(const Problem& problem, int processors);

/// Of a transposed convolution, whose mirrored problem's kernel it takes.
std::unique_ptr<Kernel> transposed_kernel(Engine& engine, const Problem& problem, std::unique_ptr<Kernel> mirrored);

/// All passes, by transforms that the engine has of a library.
std::unique_ptr<Kernel> fft_kernel(Engine& engine, const Problem& problem);
Planes fft_planes(const Conv& op);
/// Floats of the spectra of images, kernels and outputs, and of the planes of one of them.
std::int64_t fft_scratch(const Conv& op, std::int64_t batch);

}  // namespace rehearse::kernels::cuda
