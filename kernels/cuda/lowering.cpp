// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/lowering.hpp"

namespace rehearse::kernels::cuda {
namespace {

Extent3 extent(std::int64_t d, std::int64_t h, std::int64_t w) {
    return {static_cast<std::int32_t>(d), static_cast<std::int32_t>(h), static_cast<std::int32_t>(w)};
}

Extent3 row_major(const Extent3& sizes) { return {sizes.h * sizes.w, sizes.w, 1}; }

Extent3 output_of(const Conv& op) {
    const Shape shape = output_shape(op);
    return extent(shape[1], shape[2], shape[3]);
}

// The distance of tap k from the output's pixel in one dimension, in pixels of the input.
std::int64_t distance(std::int64_t k, std::int64_t dilation, std::int64_t pad) { return k * dilation - pad; }

template <typename Visit>
void for_each_tap(const Window& w, Visit visit) {
    std::int64_t tap = 0;
    for (std::int64_t d = 0; d < w.kernel_d; ++d) {
        for (std::int64_t h = 0; h < w.kernel_h; ++h) {
            for (std::int64_t x = 0; x < w.kernel_w; ++x) {
                visit(tap++, distance(d, w.dilation_d, w.pad_front), distance(h, w.dilation_h, w.pad_top),
                      distance(x, w.dilation_w, w.pad_left));
            }
        }
    }
}

Term term(std::int64_t source, std::int64_t weight, std::int64_t d, std::int64_t h, std::int64_t w) {
    return {static_cast<std::int32_t>(source), static_cast<std::int32_t>(weight), static_cast<std::int16_t>(d),
            static_cast<std::int16_t>(h),      static_cast<std::int16_t>(w),      0};
}

Launch forward(const Conv& op, std::int64_t batch) {
    const Extent3 in = extent(op.depth, op.height, op.width), out = output_of(op);
    const std::int64_t channels = op.channels / op.groups, filters = op.filters / op.groups, taps = op.window.taps();
    Launch launch;
    for (std::int64_t c = 0; c < channels; ++c) {
        for_each_tap(op.window, [&](std::int64_t tap, std::int64_t d, std::int64_t h, std::int64_t w) {
            launch.terms.push_back(term(c * in.pixels(), c * taps + tap, d, h, w));
        });
    }
    ImplicitGemm& s = launch.gemm;
    s.rows = static_cast<std::int32_t>(filters);
    s.pixels = out;
    s.step = extent(op.window.stride_d, op.window.stride_h, op.window.stride_w);
    s.extent = in;
    s.source_image = op.channels * in.pixels();
    s.source_group = channels * in.pixels();
    s.target_image = op.filters * out.pixels();
    s.target_group = filters * out.pixels();
    s.weight_group = filters * channels * taps;
    s.target_row = static_cast<std::int32_t>(out.pixels());
    s.weight_row = static_cast<std::int32_t>(channels * taps);
    s.target_step = row_major(out);
    s.images = static_cast<std::int32_t>(batch);
    s.groups = static_cast<std::int32_t>(op.groups);
    s.term_count = static_cast<std::int32_t>(launch.terms.size());
    return launch;
}

// Input pixels phase + stride * i in each dimension meet, at tap k, the output's pixel i + (phase - distance) / stride,
// if that is a whole number.
Launch backward_data(const Conv& op, std::int64_t batch, const Extent3& phase) {
    const Window& window = op.window;
    const Extent3 in = extent(op.depth, op.height, op.width), out = output_of(op);
    const Extent3 stride = extent(window.stride_d, window.stride_h, window.stride_w);
    const std::int64_t channels = op.channels / op.groups, filters = op.filters / op.groups, taps = window.taps();
    Launch launch;
    for (std::int64_t f = 0; f < filters; ++f) {
        for_each_tap(window, [&](std::int64_t tap, std::int64_t d, std::int64_t h, std::int64_t w) {
            const std::int64_t to_d = phase.d - d, to_h = phase.h - h, to_w = phase.w - w;
            if (to_d % stride.d != 0 || to_h % stride.h != 0 || to_w % stride.w != 0) return;
            launch.terms.push_back(
                term(f * out.pixels(), f * channels * taps + tap, to_d / stride.d, to_h / stride.h, to_w / stride.w));
        });
    }
    ImplicitGemm& s = launch.gemm;
    s.rows = static_cast<std::int32_t>(channels);
    s.pixels = extent(divide_up(in.d - phase.d, stride.d), divide_up(in.h - phase.h, stride.h),
                      divide_up(in.w - phase.w, stride.w));
    s.extent = out;
    s.source_image = op.filters * out.pixels();
    s.source_group = filters * out.pixels();
    s.target_image = op.channels * in.pixels();
    s.target_group = channels * in.pixels();
    s.weight_group = filters * channels * taps;
    s.target_row = static_cast<std::int32_t>(in.pixels());
    s.weight_row = static_cast<std::int32_t>(taps);
    const Extent3 step = row_major(in);
    s.target_first = phase.d * step.d + phase.h * step.h + phase.w;
    s.target_step = {step.d * stride.d, step.h * stride.h, step.w * stride.w};
    s.images = static_cast<std::int32_t>(batch);
    s.groups = static_cast<std::int32_t>(op.groups);
    s.term_count = static_cast<std::int32_t>(launch.terms.size());
    return launch;
}

}  // namespace

std::vector<Launch> launches(const Conv& op, Pass pass, std::int64_t batch) {
    if (pass != Pass::backward_data) return {forward(op, batch)};
    std::vector<Launch> all;
    const Window& w = op.window;
    for (std::int32_t d = 0; d < std::min(w.stride_d, op.depth); ++d) {
        for (std::int32_t h = 0; h < std::min(w.stride_h, op.height); ++h) {
            for (std::int32_t x = 0; x < std::min(w.stride_w, op.width); ++x) {
                all.push_back(backward_data(op, batch, {d, h, x}));
            }
        }
    }
    return all;
}

}  // namespace rehearse::kernels::cuda
