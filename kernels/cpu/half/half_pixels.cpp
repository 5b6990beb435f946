// SPDX-License-Identifier: Apache-2.0
// backward_weights in 16 bits: for each tap a product of diff_dst {filters, pixels} with the image {pixels, channels}
// shifted by the tap. Pixels run on from row to row as in half_taps.cpp; between the rows diff_dst is zero. Where the
// instruction multiplies pairs, each pixel is packed with the one after it, so that a tap may begin at an odd pixel.
#include <omp.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/direct_passes.hpp"
#include "kernels/cpu/conv/direct_simd.hpp"
#include "kernels/cpu/half/half.hpp"
#include "kernels/cpu/half/half_image.hpp"
#include "kernels/cpu/half/half_pack.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t pixel_words = 12 * 1024;  // of packed pixels used at a time: 24 KiB of a first-level cache

/// Large: the sizes of one convolution's loops and of their scratch, worked out once.
class HalfWeightGradient final : public CheckedKernel {
public:
    HalfWeightGradient(const Problem& problem, const HalfSimd& simd)
        : CheckedKernel(problem),
          simd_(simd),
          type_(problem.type),
          conv_(problem),
          sweep_(forward_sweep(conv_)),
          columns_(sweep_.image.columns),
          steps_(half_steps(simd, (conv_.out_height - 1) * columns_ + conv_.out_width)),
          height_(divide_up(conv_.group_filters, divide_up(conv_.group_filters, simd.rows))),
          panels_(divide_up(conv_.group_filters, height_)),
          blocks_(divide_up(conv_.group_channels, simd.columns)),
          pixel_(simd.columns * simd.pair),
          plane_(whole_lines(divide_up(sweep_.image.pixels() + 2, 2))),
          sums_(whole_lines(panels_ * height_ * conv_.taps * simd.columns)) {
        dst_ = whole_lines(steps_ * height_);
        image_ = whole_lines(divide_up((sweep_.image.pixels() + simd.pair) * pixel_, 2));
        chunk_ = std::clamp<std::int64_t>(packed_floats / std::max(image_, conv_.op.groups * panels_ * dst_), 1,
                                          conv_.batch);
        row_ = whole_lines(divide_up(height_ * steps_ * simd.pair, 2));
        own_ = std::max({chunk_ * image_ + simd.columns * plane_ + simd.columns * piece, row_,
                         whole_lines(simd.columns * conv_.taps)});
        reserve(conv_.op.groups * (blocks_ * sums_ + chunk_ * panels_ * dst_) + threads() * own_);
        for (const Tap& tap : sweep_.grids[0].taps) taps_.push_back({tap.offset * pixel_, 0});
    }

private:
    void compute(const Buffers& b, float* scratch) override {
        const std::int64_t groups = conv_.op.groups;
        float* const dst = scratch + groups * blocks_ * sums_;
        float* const spaces = dst + groups * chunk_ * panels_ * dst_;
#pragma omp parallel
        {
            float* const own = spaces + omp_get_thread_num() * own_;
            for (std::int64_t first = 0; first < conv_.batch; first += chunk_) {
                const std::int64_t count = std::min(chunk_, conv_.batch - first);
#pragma omp for schedule(static)
                for (std::int64_t i = 0; i < count * groups * panels_; ++i) pack_dst(b, first, i, dst + i * dst_, own);
#pragma omp for schedule(static)
                for (std::int64_t i = 0; i < groups * blocks_; ++i) {
                    add_images(b, i, first, count, dst, scratch + i * sums_, own);
                }
            }
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < groups * blocks_; ++i) store(b, i, scratch + i * sums_, own);
        }
        if (!conv_.op.bias) return;
#pragma omp parallel for schedule(static)
        for (std::int64_t f = 0; f < conv_.op.filters; ++f) add_bias(b, f);
    }

    // {step, filter} of a panel of one image; `index` counts panels of all groups of the images from `first`.
    void pack_dst(const Buffers& b, std::int64_t first, std::int64_t index, float* out, float* own) const {
        const std::int64_t filter = index % panels_ * height_;
        const std::int64_t items = std::min(height_, conv_.group_filters - filter);
        const std::int64_t group = first * conv_.op.groups + index / panels_;  // of all images
        const std::uint16_t* from =
            half_words(b.diff_dst) + (group * conv_.group_filters + filter) * conv_.out_pixels();
        const std::int64_t length = steps_ * simd_.pair;
        std::uint16_t* const rows = words(own);
        std::fill_n(rows, items * length, 0);
        for (std::int64_t i = 0; i < items; ++i) {
            for (std::int64_t y = 0; y < conv_.out_height; ++y, from += conv_.out_width) {
                std::copy_n(from, conv_.out_width, rows + i * length + y * columns_);
            }
        }
        pack_half_a(simd_, {rows, length, 1}, items, length, height_, units(out));
    }

    // Block `index` of channels of all groups: `count` images from `first`.
    void add_images(const Buffers& b, std::int64_t index, std::int64_t first, std::int64_t count, float* dst,
                    float* sums, float* own) const {
        const std::int64_t group = index / blocks_;
        for (std::int64_t n = 0; n < count; ++n) {
            pack_src(b, (first + n) * conv_.op.groups + group, index % blocks_, own + n * image_,
                     own + chunk_ * image_);
        }
        const std::int64_t at_once = std::max<std::int64_t>(1, pixel_words / (pixel_ * simd_.pair));
        for (std::int64_t p = 0; p < panels_; ++p) {
            for (std::int64_t n = 0; n < count; ++n) {
                const std::int64_t panel = (n * conv_.op.groups + group) * panels_ + p;
                for (std::int64_t step = 0; step < steps_; step += at_once) {
                    add_steps(units(dst + panel * dst_), words(own + n * image_), p, step, at_once,
                              first + n + step > 0, sums);
                }
            }
        }
    }

    void add_steps(const std::uint32_t* dst, const std::uint16_t* src, std::int64_t panel, std::int64_t step,
                   std::int64_t at_once, bool accumulate, float* sums) const {
        static constexpr TapAt here{0, 0};
        for (std::size_t t = 0; t < taps_.size(); ++t) {
            float* const c = sums + (panel * height_ * conv_.taps + static_cast<std::int64_t>(t)) * simd_.columns;
            simd_.multiply(std::min(height_, conv_.group_filters - panel * height_),
                           {.a = dst + step * height_,
                            .a_channel = height_,
                            .b = src + taps_[t].src + step * simd_.pair * pixel_,
                            .b_channel = simd_.pair * pixel_,
                            .taps = &here,
                            .tap_count = 1,
                            .channels = std::min(at_once, steps_ - step),
                            .c = c,
                            .ldc = conv_.taps * simd_.columns,
                            .accumulate = accumulate});
        }
    }

    // {pixel, channel, pair} of a block of channels of one image.
    void pack_src(const Buffers& b, std::int64_t image, std::int64_t block, float* out, float* own) const {
        const std::int64_t pixels = sweep_.image.pixels();
        const std::int64_t first = block * simd_.columns;
        const std::int64_t channels = std::min(simd_.columns, conv_.group_channels - first);
        const std::uint16_t* const from =
            half_words(b.src[0]) + (image * conv_.group_channels + first) * conv_.in_pixels();
        std::uint32_t* const pairs = units(own + simd_.columns * plane_);
        HalfSimd single = simd_;
        single.pair = 1;
        std::fill_n(words(out), (pixels + simd_.pair) * pixel_, 0);
        for (std::int64_t c = 0; c < channels; ++c) {
            std::uint16_t* const plane = words(own + c * plane_);
            pack_half_image(single, sweep_.image, {from + c * conv_.in_pixels(), nullptr}, plane);
            plane[pixels] = 0;
        }
        if (simd_.pair == 1) return transpose(words(own), 2 * plane_, channels, pixels, words(out), pixel_);
        for (std::int64_t p = 0; p < pixels; p += piece) {
            const std::int64_t count = std::min(piece, pixels - p);
            for (std::int64_t c = 0; c < channels; ++c) {
                const std::uint16_t* const plane = words(own + c * plane_) + p;
                simd_.zip(plane, plane + 1, count, reinterpret_cast<std::uint16_t*>(pairs + c * piece));
            }
            transpose(pairs, piece, channels, count, units(out) + p * simd_.columns, simd_.columns);
        }
    }

    // {filter, channel, tap}, rounded, from sums {filter, tap, channel}.
    void store(const Buffers& b, std::int64_t index, const float* sums, float* own) const {
        const std::int64_t first = index % blocks_ * simd_.columns;
        const std::int64_t channels = std::min(simd_.columns, conv_.group_channels - first);
        const std::int64_t row = conv_.group_channels * conv_.taps;
        std::uint16_t* const diff_weights =
            half_words(b.diff_weights) + index / blocks_ * conv_.group_filters * row + first * conv_.taps;
        for (std::int64_t f = 0; f < conv_.group_filters; ++f) {
            const float* const from = sums + f * conv_.taps * simd_.columns;
            direct_simd().transpose(from, simd_.columns, conv_.taps, channels, own, conv_.taps);
            round_half(type_, own, diff_weights + f * row, channels * conv_.taps);
        }
    }

    void add_bias(const Buffers& b, std::int64_t f) const {
        const std::uint16_t* const diff_dst = half_words(b.diff_dst) + f * conv_.out_pixels();
        double sum = 0;
        for (std::int64_t n = 0; n < conv_.batch; ++n) {
            sum += sum_halves(type_, diff_dst + n * conv_.op.filters * conv_.out_pixels(), conv_.out_pixels(), 1);
        }
        const auto rounded = static_cast<float>(sum);
        round_half(type_, &rounded, half_words(b.diff_weights) + conv_.weight_count() + f, 1);
    }

    static constexpr std::int64_t piece = 64;  // pixels that are paired at a time

    const HalfSimd& simd_;
    DataType type_;
    Convolution conv_;
    Sweep sweep_;
    std::int64_t columns_;              // of the packed image
    std::int64_t steps_;                // of the outputs of one image
    std::int64_t height_, panels_;      // filters of a panel
    std::int64_t blocks_;               // of channels
    std::int64_t pixel_;                // 16-bit numbers of a packed pixel
    std::int64_t plane_, sums_;         // floats' room of a channel's plane, of a block's sums
    std::int64_t dst_ = 0, image_ = 0;  // of a panel of diff_dst, of a block of channels, of one image
    std::int64_t row_ = 0, own_ = 0;
    std::int64_t chunk_ = 1;  // images at a time
    std::vector<TapAt> taps_;
};

}  // namespace

std::unique_ptr<Kernel> half_weight_gradient(const Problem& problem, const HalfSimd& simd) {
    return std::make_unique<HalfWeightGradient>(problem, simd);
}

}  // namespace rehearse::kernels::cpu
