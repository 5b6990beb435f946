// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/convolution.hpp"

#include <fmt/format.h>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/gemm/epilogue.hpp"

namespace rehearse::kernels::cpu {

Convolution::Convolution(const Problem& problem) : op(std::get<Conv>(problem.op)), batch(problem.batch) {
    const Shape out = output_shape(problem.op);
    if (op.depth > 0) {
        depth = op.depth;
        out_depth = out[1];
    }
    out_height = out[out.size() - 2];
    out_width = out.back();
    group_channels = op.channels / op.groups;
    group_filters = op.filters / op.groups;
    taps = op.window.taps();
}

std::string refuse_all_but_convolutions(const Problem& problem, std::string_view algorithm) {
    if (std::holds_alternative<Conv>(problem.op)) return {};
    return fmt::format("{} runs convolutions, not {}", algorithm, kind_of(problem.op));
}

std::string refuse_all_but_conv2d(const Problem& problem, std::string_view algorithm) {
    if (as_conv2d(problem.op) != nullptr) return {};
    return fmt::format("{} runs conv2d, not {}", algorithm, kind_of(problem.op));
}

const float* diff_planes(const Convolution& conv, const Buffers& b, std::int64_t first, std::int64_t count,
                         float* room) {
    const std::int64_t at = first * conv.out_pixels();
    if (!conv.op.relu) return b.diff_dst.data() + at;
    mask(b.diff_dst.data() + at, b.dst_in.data() + at, count * conv.out_pixels(), room);
    return room;
}

std::int64_t diff_room(const Convolution& conv, std::int64_t planes) {
    return conv.op.relu ? whole_lines(planes * conv.out_pixels()) : 0;
}

void sum_diff_bias(const Convolution& conv, const Buffers& b) {
    const float* const diff_dst = b.diff_dst.data();
    const float* const dst = conv.op.relu ? b.dst_in.data() : nullptr;
    float* const diff_bias = b.diff_weights.data() + conv.weight_count();
    const std::int64_t pixels = conv.out_pixels();
#pragma omp parallel for schedule(static)
    for (std::int64_t f = 0; f < conv.op.filters; ++f) {
        double all = 0;
        for (std::int64_t n = 0; n < conv.batch; ++n) {
            const std::int64_t at = (n * conv.op.filters + f) * pixels;
            all += sum(diff_dst + at, dst == nullptr ? nullptr : dst + at, pixels);
        }
        diff_bias[f] = static_cast<float>(all);
    }
}

}  // namespace rehearse::kernels::cpu
