// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/convolution.hpp"

#include <fmt/format.h>

namespace rehearse::kernels::cpu {

namespace {

Conv2d plane_of(const Op& op) {
    const auto* volume = std::get_if<Conv3d>(&op);
    if (volume == nullptr) return std::get<Conv2d>(op);
    return {volume->channels, volume->height, volume->width, volume->filters,
            volume->window,   volume->groups, volume->bias};
}

}  // namespace

Convolution::Convolution(const Problem& problem) : op(plane_of(problem.op)), batch(problem.batch) {
    const Shape out = output_shape(problem.op);
    if (const auto* volume = std::get_if<Conv3d>(&problem.op)) {
        depth = volume->depth;
        out_depth = out[1];
    }
    out_height = out[out.size() - 2];
    out_width = out.back();
    group_channels = op.channels / op.groups;
    group_filters = op.filters / op.groups;
    taps = op.window.taps();
}

std::string refuse_all_but_convolutions(const Problem& problem, std::string_view algorithm) {
    if (std::holds_alternative<Conv2d>(problem.op) || std::holds_alternative<Conv3d>(problem.op)) return {};
    return fmt::format("{} runs convolutions, not {}", algorithm, kind_of(problem.op));
}

std::string refuse_all_but_conv2d(const Problem& problem, std::string_view algorithm) {
    if (std::holds_alternative<Conv2d>(problem.op)) return {};
    return fmt::format("{} runs conv2d, not {}", algorithm, kind_of(problem.op));
}

void sum_diff_bias(const Convolution& conv, const float* diff_dst, float* diff_bias) {
    const std::int64_t pixels = conv.out_pixels();
#pragma omp parallel for schedule(static)
    for (std::int64_t f = 0; f < conv.op.filters; ++f) {
        double sum = 0;
        for (std::int64_t n = 0; n < conv.batch; ++n) {
            const float* plane = diff_dst + (n * conv.op.filters + f) * pixels;
            for (std::int64_t i = 0; i < pixels; ++i) sum += plane[i];
        }
        diff_bias[f] = static_cast<float>(sum);
    }
}

}  // namespace rehearse::kernels::cpu
