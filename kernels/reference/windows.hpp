// SPDX-License-Identifier: Apache-2.0
// Where a sliding window touches the image: shared by convolution and pooling.
#pragma once

#include <cstdint>

#include "core/op.hpp"

namespace rehearse::kernels::reference {

/// visit(pixel in the image, tap in the window), row by row, for the taps of output (y, x) that lie inside the image.
template <typename Visit>
void for_each_tap(const Window& w, std::int64_t height, std::int64_t width, std::int64_t y, std::int64_t x,
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

}  // namespace rehearse::kernels::reference
