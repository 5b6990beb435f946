// SPDX-License-Identifier: Apache-2.0
// Where a sliding window touches the image: shared by convolution and pooling.
#pragma once

#include <cstdint>

#include "core/op.hpp"

namespace rehearse::kernels::reference {

/// Of one channel: {depth, height, width}, an image having a depth of 1.
struct Extent {
    std::int64_t depth = 1, height = 1, width = 1;
    std::int64_t pixels() const { return depth * height * width; }
};
inline Extent extent(const Shape& shape) {
    return {shape.size() == 4 ? shape[1] : 1, shape[shape.size() - 2], shape.back()};
}

/// visit(pixel in the plane, tap in the window), row by row, for the taps of output (y, x) that lie inside the plane.
template <typename Visit>
void for_each_tap_of_plane(const Window& w, std::int64_t height, std::int64_t width, std::int64_t y, std::int64_t x,
                           Visit visit) {
    for (std::int64_t r = 0; r < w.kernel_h; ++r) {
        const std::int64_t image_y = y * w.stride_h - w.pad_top + r * w.dilation_h;
        if (image_y < 0 || image_y >= height) continue;
        for (std::int64_t s = 0; s < w.kernel_w; ++s) {
            const std::int64_t image_x = x * w.stride_w - w.pad_left + s * w.dilation_w;
            if (image_x >= 0 && image_x < width) visit(image_y * width + image_x, r * w.kernel_w + s);
        }
    }
}

/// The same of output (z, y, x) of a volume, plane by plane.
template <typename Visit>
void for_each_tap(const Window& w, const Extent& in, const Extent& at, Visit visit) {
    for (std::int64_t t = 0; t < w.kernel_d; ++t) {
        const std::int64_t z = at.depth * w.stride_d - w.pad_front + t * w.dilation_d;
        if (z < 0 || z >= in.depth) continue;
        const std::int64_t pixels = z * in.height * in.width;
        const std::int64_t taps = t * w.kernel_h * w.kernel_w;
        for_each_tap_of_plane(w, in.height, in.width, at.height, at.width,
                              [&](std::int64_t pixel, std::int64_t tap) { visit(pixels + pixel, taps + tap); });
    }
}

/// visit(where) for each output of `out`, row by row.
template <typename Visit>
void for_each_place(const Extent& out, Visit visit) {
    for (std::int64_t z = 0; z < out.depth; ++z) {
        for (std::int64_t y = 0; y < out.height; ++y) {
            for (std::int64_t x = 0; x < out.width; ++x) visit(Extent{z, y, x});
        }
    }
}

}  // namespace rehearse::kernels::reference
