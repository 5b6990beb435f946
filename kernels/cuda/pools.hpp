// SPDX-License-Identifier: Apache-2.0
// Pooling, of images and volumes: a thread an output forward, a thread a pixel backward, which looks at every window
// that it lies in, so that nothing is added in an order that changes.
#pragma once

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// One dimension of a sliding window.
struct Slide {
    std::int32_t in = 1, out = 1, kernel = 1, pad = 0, dilation = 1, stride = 1;
    Divisor by_stride;

    REHEARSE_BOTH std::int32_t pixel(std::int32_t output, std::int32_t tap) const {
        return output * stride - pad + tap * dilation;
    }
    REHEARSE_BOTH bool holds(std::int32_t pixel) const { return pixel >= 0 && pixel < in; }
    /// The output whose tap lies on the pixel, or -1.
    REHEARSE_BOTH std::int32_t output(std::int32_t pixel, std::int32_t tap) const {
        const std::int32_t at = pixel + pad - tap * dilation;
        if (at < 0) return -1;
        const std::int32_t found = at / by_stride;
        return found * stride == at && found < out ? found : -1;
    }
};

struct Pooling : PointWise {
    static constexpr int resident = 5;
    Values src, diff, dst;  // with a `diff`, dst is the gradient of src
    Slide d, h, w;
    Divisor depth, height, width;  // of what has a thread a value: dst
    bool largest = true, count_padding = false;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) { dst.put(i, diff ? gradient(i) : pooled(i)); });
    }

private:
    struct Place {
        std::int64_t plane;
        std::int32_t d, h, w;
    };
    REHEARSE_BOTH Place place(std::int64_t i) const {
        const std::int64_t row = i / width, layer = row / height, plane = layer / depth;
        return {plane, static_cast<std::int32_t>(layer - plane * depth),
                static_cast<std::int32_t>(row - layer * height), static_cast<std::int32_t>(i - row * width)};
    }
    REHEARSE_BOTH std::int64_t source(std::int64_t plane, std::int32_t z, std::int32_t y, std::int32_t x) const {
        return ((plane * d.in + z) * h.in + y) * w.in + x;
    }
    /// visit(source index) for each pixel of a window, row by row.
    template <typename F>
    REHEARSE_BOTH void each_pixel(const Place& out, F visit) const {
        for (std::int32_t t = 0; t < d.kernel; ++t) {
            const std::int32_t z = d.pixel(out.d, t);
            for (std::int32_t r = 0; d.holds(z) && r < h.kernel; ++r) {
                const std::int32_t y = h.pixel(out.h, r);
                for (std::int32_t s = 0; h.holds(y) && s < w.kernel; ++s) {
                    const std::int32_t x = w.pixel(out.w, s);
                    if (w.holds(x)) visit(source(out.plane, z, y, x));
                }
            }
        }
    }
    REHEARSE_BOTH float divisor(const Place& out) const {
        if (count_padding) return static_cast<float>(d.kernel * h.kernel * w.kernel);
        std::int32_t pixels = 0;
        each_pixel(out, [&](std::int64_t) { ++pixels; });
        return static_cast<float>(pixels);
    }
    /// The first of equals; -1 of an empty window.
    REHEARSE_BOTH std::int64_t first_largest(const Place& out) const {
        std::int64_t best = -1;
        float value = 0;
        each_pixel(out, [&](std::int64_t at) {
            const float here = src.at(at);
            if (best < 0 || here > value) best = at, value = here;
        });
        return best;
    }
    REHEARSE_BOTH float pooled(std::int64_t i) const {
        const Place out = place(i);
        if (largest) {
            const std::int64_t best = first_largest(out);
            return best < 0 ? 0.0F : src.at(best);
        }
        float total = 0;
        each_pixel(out, [&](std::int64_t at) { total += src.at(at); });
        const float by = divisor(out);
        return by > 0 ? total / by : 0.0F;
    }
    REHEARSE_BOTH float gradient(std::int64_t i) const {
        const Place in = place(i);
        float total = 0;
        for (std::int32_t t = 0; t < d.kernel; ++t) {
            const std::int32_t z = d.output(in.d, t);
            for (std::int32_t r = 0; z >= 0 && r < h.kernel; ++r) {
                const std::int32_t y = h.output(in.h, r);
                for (std::int32_t s = 0; y >= 0 && s < w.kernel; ++s) {
                    const std::int32_t x = w.output(in.w, s);
                    if (x >= 0) total += share(i, {in.plane, z, y, x});
                }
            }
        }
        return total;
    }
    /// What pixel i gets of an output's gradient.
    REHEARSE_BOTH float share(std::int64_t i, const Place& out) const {
        const std::int64_t at = ((out.plane * d.out + out.d) * h.out + out.h) * w.out + out.w;
        if (largest) return first_largest(out) == i ? diff.at(at) : 0.0F;
        return diff.at(at) / divisor(out);
    }
};

}  // namespace rehearse::kernels::cuda
