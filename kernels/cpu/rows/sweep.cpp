// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rows/sweep.hpp"

#include <algorithm>
#include <utility>

namespace rehearse::kernels::cpu {
namespace {

// One direction of a window: the sweep is the product of two.
struct Axis {
    std::int64_t kernel, stride, dilation, pad, in, out;
};

Axis vertical(const Convolution& conv) {
    const Window& w = conv.op.window;
    return {w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, conv.op.height, conv.out_height};
}

Axis horizontal(const Convolution& conv) {
    const Window& w = conv.op.window;
    return {w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, conv.op.width, conv.out_width};
}

struct ForwardAxis {
    std::vector<std::int64_t> phases, phase_of, offset;  // the last two: of each tap
    std::int64_t size = 0;
};

ForwardAxis forward_axis(const Axis& axis) {
    ForwardAxis found;
    for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
        const std::int64_t phase = tap * axis.dilation % axis.stride;
        auto at = std::ranges::find(found.phases, phase);
        if (at == found.phases.end()) at = found.phases.insert(at, phase);
        found.phase_of.push_back(at - found.phases.begin());
        found.offset.push_back(tap * axis.dilation / axis.stride);
        found.size = std::max(found.size, found.offset.back() + axis.out);
    }
    return found;
}

// A tap that pixels first, first + stride, ... of the input meet: the i-th of them meets output i + offset.
struct Meeting {
    std::int64_t tap, offset;
};

struct BackwardAxis {
    std::vector<std::vector<Meeting>> meetings;  // of each phase
    std::vector<std::int64_t> counts;            // pixels of each phase
    std::int64_t first = 0, size = 0;            // of the outputs that are met, padding included
};

BackwardAxis backward_axis(const Axis& axis) {
    BackwardAxis found;
    std::int64_t first = axis.out;
    std::int64_t last = 0;
    for (std::int64_t phase = 0; phase < std::min(axis.stride, axis.in); ++phase) {
        found.counts.push_back((axis.in - phase + axis.stride - 1) / axis.stride);
        std::vector<Meeting> met;
        for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
            const std::int64_t distance = phase + axis.pad - tap * axis.dilation;
            if (distance % axis.stride != 0) continue;
            met.push_back({tap, distance / axis.stride});
            first = std::min(first, met.back().offset);
            last = std::max(last, met.back().offset + found.counts.back());
        }
        found.meetings.push_back(met);
    }
    found.first = first;
    found.size = std::max<std::int64_t>(1, last - first);
    return found;
}

// The sweep of a volume, from that of a plane: plane_of(plane of outputs, tap over depth) is the plane that the tap
// reads, outside of [0, planes) where there is none.
template <typename PlaneOf>
Sweep over_depth(const Convolution& conv, const Sweep& flat, std::int64_t planes, std::int64_t out_planes,
                 PlaneOf plane_of) {
    Sweep sweep = flat;
    sweep.image.planes = planes;
    sweep.out_planes = out_planes;
    sweep.grids.clear();
    for (std::int64_t z = 0; z < out_planes; ++z) {
        for (Grid grid : flat.grids) {
            grid.plane = z;
            const std::vector<Tap> taps = std::exchange(grid.taps, {});
            for (std::int64_t t = 0; t < conv.op.window.kernel_d; ++t) {
                const std::int64_t plane = plane_of(z, t);
                if (plane < 0 || plane >= planes) continue;
                for (const Tap& tap : taps) {
                    grid.taps.push_back({plane * sweep.image.plane_pixels() + tap.offset,
                                         t * conv.op.window.kernel_h * conv.op.window.kernel_w + tap.index});
                }
            }
            sweep.grids.push_back(grid);
        }
    }
    return sweep;
}

Sweep forward_plane(const Convolution& conv) {
    const Window& w = conv.op.window;
    const ForwardAxis y = forward_axis(vertical(conv));
    const ForwardAxis x = forward_axis(horizontal(conv));
    Sweep sweep{{{}, conv.op.height, conv.op.width, y.size, x.size}, {}, conv.out_height, conv.out_width};
    for (const std::int64_t phase_y : y.phases) {
        for (const std::int64_t phase_x : x.phases) {
            sweep.image.phases.push_back({phase_y - w.pad_top, phase_x - w.pad_left, w.stride_h, w.stride_w});
        }
    }
    Grid grid{{}, conv.out_height, conv.out_width, {}};
    for (std::int64_t r = 0; r < w.kernel_h; ++r) {
        for (std::int64_t s = 0; s < w.kernel_w; ++s) {
            const std::int64_t phase = y.phase_of[r] * static_cast<std::int64_t>(x.phases.size()) + x.phase_of[s];
            grid.taps.push_back({(phase * y.size + y.offset[r]) * x.size + x.offset[s], r * w.kernel_w + s});
        }
    }
    sweep.grids.push_back(grid);
    return sweep;
}

Sweep backward_plane(const Convolution& conv) {
    const Window& w = conv.op.window;
    const BackwardAxis y = backward_axis(vertical(conv));
    const BackwardAxis x = backward_axis(horizontal(conv));
    Sweep sweep{{{{y.first, x.first, 1, 1}}, conv.out_height, conv.out_width, y.size, x.size},
                {},
                conv.op.height,
                conv.op.width};
    for (std::size_t i = 0; i < y.counts.size(); ++i) {
        for (std::size_t j = 0; j < x.counts.size(); ++j) {
            const auto phase_y = static_cast<std::int64_t>(i);
            const auto phase_x = static_cast<std::int64_t>(j);
            Grid grid{{}, y.counts[i], x.counts[j], {phase_y, phase_x, w.stride_h, w.stride_w}};
            for (const Meeting& r : y.meetings[i]) {
                for (const Meeting& s : x.meetings[j]) {
                    grid.taps.push_back(
                        {(r.offset - y.first) * x.size + s.offset - x.first, r.tap * w.kernel_w + s.tap});
                }
            }
            sweep.grids.push_back(grid);
        }
    }
    return sweep;
}

}  // namespace

Sweep forward_sweep(const Convolution& conv) {
    const Window& w = conv.op.window;
    return over_depth(conv, forward_plane(conv), conv.depth, conv.out_depth,
                      [&](std::int64_t z, std::int64_t t) { return z * w.stride_d - w.pad_front + t * w.dilation_d; });
}

Sweep backward_sweep(const Convolution& conv) {
    const Window& w = conv.op.window;
    return over_depth(conv, backward_plane(conv), conv.out_depth, conv.depth, [&](std::int64_t z, std::int64_t t) {
        const std::int64_t distance = z + w.pad_front - t * w.dilation_d;
        return distance % w.stride_d == 0 ? distance / w.stride_d : -1;
    });
}

}  // namespace rehearse::kernels::cpu
