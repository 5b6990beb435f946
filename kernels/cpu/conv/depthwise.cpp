// SPDX-License-Identifier: Apache-2.0
// Groups of one channel and one filter: a vector holds as many groups as it has lanes. A block of channels of one
// sample is packed, computed and stored by one thread while it is in that thread's cache.
#include <omp.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/direct_passes.hpp"
#include "kernels/cpu/conv/strips.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t strip_floats = 4 * 1024;  // of what is summed, and as much of what is read: 32 KiB

class Depthwise : public CheckedKernel {
protected:
    Depthwise(const Problem& problem, Sweep (*sweep)(const Convolution&))
        : CheckedKernel(problem), simd_(direct_simd()), conv_(problem), sweep_(sweep(conv_)) {
        blocks_ = divide_up(conv_.op.channels, simd_.lanes);
        plane_ = whole_lines(sweep_.image.pixels() * simd_.lanes);
        weights_ = whole_lines(conv_.taps * simd_.lanes);
        strips_ = cut_into_strips(sweep_, simd_.lanes, strip_floats);
        taps_ = taps_of_grids(sweep_, simd_.lanes, simd_.lanes);
    }

    std::int64_t channels_of(std::int64_t block) const {
        return std::min(simd_.lanes, conv_.op.channels - block * simd_.lanes);
    }

    // `index` counts blocks of all samples.
    std::int64_t first_channel(std::int64_t index) const {
        return index / blocks_ * conv_.op.channels + index % blocks_ * simd_.lanes;
    }

    const DirectSimd& simd_;
    Convolution conv_;
    Sweep sweep_;
    std::int64_t blocks_, plane_, weights_;
    std::vector<RowStrip> strips_;
    std::vector<std::vector<TapAt>> taps_;  // of each grid
};

class DepthwiseConvolution final : public Depthwise {
public:
    explicit DepthwiseConvolution(const Problem& problem)
        : Depthwise(problem, problem.pass == Pass::forward ? forward_sweep : backward_sweep),
          forward_(problem.pass == Pass::forward),
          strip_(whole_lines(most_pixels(sweep_, strips_) * simd_.lanes)) {
        own_ = plane_ + 2 * strip_ + (forward_ ? 0 : diff_room(conv_, simd_.lanes));
        reserve(blocks_ * weights_ + threads() * own_);
    }

private:
    void compute(const Buffers& b, float* scratch) override {
#pragma omp parallel
        {
            float* const own = scratch + blocks_ * weights_ + omp_get_thread_num() * own_;
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < blocks_; ++i) {
                const float* const from = b.weights.data() + i * simd_.lanes * conv_.taps;
                std::fill_n(scratch + i * weights_, weights_, 0.0F);
                simd_.transpose(from, conv_.taps, channels_of(i), conv_.taps, scratch + i * weights_, simd_.lanes);
            }
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < conv_.batch * blocks_; ++i) {
                run_block(b, i, scratch + i % blocks_ * weights_, own);
            }
        }
    }

    void run_block(const Buffers& b, std::int64_t index, const float* weights, float* own) const {
        const std::int64_t channel = first_channel(index);
        const std::int64_t channels = channels_of(index % blocks_);
        const float* const in = forward_ ? b.src[0].data() + channel * conv_.in_pixels()
                                         : diff_planes(conv_, b, channel, channels, own + plane_ + 2 * strip_);
        float* const out = forward_ ? b.dst.data() : b.diff_src[0].data();
        simd_.pack_image(sweep_.image, in, channels, own);
        const StripStore to{simd_, sweep_, channels, simd_.lanes, out + channel * sweep_.out_pixels()};
        const std::int64_t row = sweep_.image.columns * simd_.lanes;
        float* const summed = own + plane_;
        const bool bias = forward_ && conv_.op.bias;
        for (const RowStrip& strip : strips_) {
            const std::int64_t columns = sweep_.grids[strip.grid].columns;
            if (bias) fill_with_bias(b, index % blocks_ * simd_.lanes, channels, strip.rows * columns, summed);
            simd_.sum_over_taps_by_lane({.src = own + strip.first * row,
                                         .block = 0,
                                         .src_row = row,
                                         .weights = weights,
                                         .channel = 0,
                                         .taps = taps_[strip.grid].data(),
                                         .tap_count = static_cast<std::int64_t>(taps_[strip.grid].size()),
                                         .channels = channels,
                                         .rows = strip.rows,
                                         .columns = columns,
                                         .out = summed,
                                         .accumulate = bias,
                                         .relu = forward_ && conv_.op.relu});
            store(to, strip, summed, summed + strip_);
        }
    }

    void fill_with_bias(const Buffers& b, std::int64_t channel, std::int64_t channels, std::int64_t pixels,
                        float* out) const {
        const float* const bias = b.weights.data() + conv_.weight_count() + channel;
        for (std::int64_t i = 0; i < pixels; ++i) std::copy_n(bias, channels, out + i * simd_.lanes);
    }

    bool forward_;
    std::int64_t strip_, own_ = 0;  // own_: floats of a thread
};

class DepthwiseWeightGradient final : public Depthwise {
public:
    explicit DepthwiseWeightGradient(const Problem& problem)
        : Depthwise(problem, forward_sweep), dst_(whole_lines(conv_.out_pixels() * simd_.lanes)) {
        own_ = plane_ + dst_ + weights_ + diff_room(conv_, simd_.lanes);
        reserve(threads() * own_);
    }

private:
    void compute(const Buffers& b, float* scratch) override {
#pragma omp parallel for schedule(static)
        for (std::int64_t block = 0; block < blocks_; ++block) {
            float* const own = scratch + omp_get_thread_num() * own_;
            float* const sums = own + plane_ + dst_;
            std::fill_n(sums, weights_, 0.0F);
            for (std::int64_t n = 0; n < conv_.batch; ++n) add_sample(b, n * blocks_ + block, own, sums);
            simd_.transpose(sums, simd_.lanes, conv_.taps, channels_of(block),
                            b.diff_weights.data() + block * simd_.lanes * conv_.taps, conv_.taps);
        }
        if (conv_.op.bias) sum_diff_bias(conv_, b);
    }

    void add_sample(const Buffers& b, std::int64_t index, float* src, float* sums) const {
        const std::int64_t channel = first_channel(index);
        const std::int64_t channels = channels_of(index % blocks_);
        const std::int64_t pixels = conv_.out_pixels();
        float* const dst = src + plane_;
        simd_.pack_image(sweep_.image, b.src[0].data() + channel * conv_.in_pixels(), channels, src);
        const float* const diff = diff_planes(conv_, b, channel, channels, dst + dst_ + weights_);
        simd_.transpose(diff, pixels, channels, pixels, dst, simd_.lanes);
        const std::int64_t row = sweep_.image.columns * simd_.lanes;
        for (const RowStrip& strip : strips_) {
            const Grid& grid = sweep_.grids[strip.grid];
            simd_.sum_over_pixels_by_lane(
                {.src = src + strip.first * row,
                 .src_row = row,
                 .diff_dst = dst + (grid.plane * conv_.out_height + strip.first) * conv_.out_width * simd_.lanes,
                 .channels = channels,
                 .rows = strip.rows,
                 .columns = conv_.out_width,
                 .out = sums,
                 .out_row = 0},
                taps_[strip.grid].data(), static_cast<std::int64_t>(taps_[strip.grid].size()));
        }
    }

    std::int64_t dst_, own_ = 0;  // own_: floats of a thread
};

}  // namespace

bool is_depthwise(const Convolution& conv) {
    return conv.op.groups > 1 && conv.group_channels == 1 && conv.group_filters == 1;
}

std::unique_ptr<Kernel> depthwise(const Problem& problem) {
    if (problem.pass == Pass::backward_weights) return std::make_unique<DepthwiseWeightGradient>(problem);
    return std::make_unique<DepthwiseConvolution>(problem);
}

}  // namespace rehearse::kernels::cpu
