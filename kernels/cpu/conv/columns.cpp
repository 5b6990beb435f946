// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/columns.hpp"

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"

namespace rehearse::kernels::cpu {
namespace {

// visit(pixel of the tile, how many, where in the image) for each run of pixels of a row whose tap lies inside the
// image; the next pixel of a run is stride_w further in the image.
template <typename Visit>
void for_each_run(const Convolution& conv, std::int64_t tap, std::int64_t first, std::int64_t count, Visit visit) {
    const Window& w = conv.op.window;
    const std::int64_t s = tap % w.kernel_w;
    const std::int64_t r = tap / w.kernel_w % w.kernel_h;
    const std::int64_t t = tap / (w.kernel_w * w.kernel_h);
    const std::int64_t shift = s * w.dilation_w - w.pad_left;  // image x of output x = 0
    const std::int64_t begin = shift < 0 ? divide_up(-shift, w.stride_w) : 0;
    const std::int64_t end = shift < conv.op.width ? divide_up(conv.op.width - shift, w.stride_w) : 0;
    std::int64_t x = first % conv.out_width;
    std::int64_t y = first / conv.out_width % conv.out_height;
    std::int64_t z = first / (conv.out_width * conv.out_height);
    for (std::int64_t pixel = 0; pixel < count; x = 0, ++y) {
        if (y == conv.out_height) {
            y = 0;
            ++z;
        }
        const std::int64_t length = std::min(conv.out_width - x, count - pixel);
        const std::int64_t image_y = y * w.stride_h + r * w.dilation_h - w.pad_top;
        const std::int64_t image_z = z * w.stride_d + t * w.dilation_d - w.pad_front;
        const std::int64_t from = std::max(x, begin);
        const std::int64_t to = std::min(x + length, end);
        const bool inside = image_y >= 0 && image_y < conv.op.height && image_z >= 0 && image_z < conv.depth;
        if (inside && from < to) {
            const std::int64_t row = image_z * conv.op.height + image_y;
            visit(pixel + from - x, to - from, row * conv.op.width + from * w.stride_w + shift);
        }
        pixel += length;
    }
}

}  // namespace

void gather(const Convolution& conv, const float* image, std::int64_t first, std::int64_t count, float* out,
            std::int64_t out_row) {
    for (std::int64_t tap = 0; tap < conv.taps; ++tap) {
        float* const row = out + tap * out_row;
        std::fill_n(row, count, 0.0F);
        const std::int64_t stride = conv.op.window.stride_w;
        for_each_run(conv, tap, first, count, [&](std::int64_t at, std::int64_t length, std::int64_t from) {
            if (stride == 1) {
                std::copy_n(image + from, length, row + at);
            } else {
                for (std::int64_t i = 0; i < length; ++i) row[at + i] = image[from + i * stride];
            }
        });
    }
}

void scatter(const Convolution& conv, const float* columns, std::int64_t row, std::int64_t first, std::int64_t count,
             float* image) {
    for (std::int64_t tap = 0; tap < conv.taps; ++tap) {
        const float* const from = columns + tap * row;
        const std::int64_t stride = conv.op.window.stride_w;
        for_each_run(conv, tap, first, count, [&](std::int64_t at, std::int64_t length, std::int64_t to) {
            for (std::int64_t i = 0; i < length; ++i) image[to + i * stride] += from[at + i];
        });
    }
}

}  // namespace rehearse::kernels::cpu
