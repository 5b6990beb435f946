// SPDX-License-Identifier: Apache-2.0
// Interpolation is separable: along each direction a pixel is a mixture of two pixels, and so in 2-D of four, in 3-D
// of eight. The gradient goes back with the same weights.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// Output pixel i of one direction is (1 - part) x pixel `low` + part x pixel `high`.
struct Mix {
    std::int64_t low = 0, high = 0;
    double part = 0;
};

std::vector<Mix> mixes(const Resize& op, std::int64_t from, std::int64_t to) {
    std::vector<Mix> found;
    const auto in = static_cast<double>(from);
    const auto out = static_cast<double>(to);
    for (std::int64_t i = 0; i < to; ++i) {
        double centre = (static_cast<double>(i) + 0.5) * in / out - 0.5;
        if (op.align_corners) centre = to == 1 ? 0 : static_cast<double>(i) * (in - 1) / (out - 1);
        centre = std::clamp(centre, 0.0, in - 1);
        if (op.kind == Interpolation::nearest) {
            const auto nearest = static_cast<std::int64_t>(std::floor(centre + 0.5));
            found.push_back({nearest, nearest, 0});
            continue;
        }
        const auto low = static_cast<std::int64_t>(std::floor(centre));
        found.push_back({low, std::min(low + 1, from - 1), centre - static_cast<double>(low)});
    }
    return found;
}

// visit(pixel of the output, pixel of the input, weight) within one channel.
template <typename Visit>
void for_each_pair(const Resize& op, Visit visit) {
    const bool volume = op.depth > 0;
    const std::vector<Mix> zs = volume ? mixes(op, op.depth, op.out_depth) : std::vector<Mix>(1);
    const std::vector<Mix> ys = mixes(op, op.height, op.out_height);
    const std::vector<Mix> xs = mixes(op, op.width, op.out_width);
    std::int64_t out = 0;
    for (const Mix& z : zs) {
        for (const Mix& y : ys) {
            for (const Mix& x : xs) {
                for (int corner = 0; corner < 8; ++corner) {
                    const bool far_z = (corner & 4) != 0;
                    const bool far_y = (corner & 2) != 0;
                    const bool far_x = (corner & 1) != 0;
                    const double weight =
                        (far_z ? z.part : 1 - z.part) * (far_y ? y.part : 1 - y.part) * (far_x ? x.part : 1 - x.part);
                    if (weight == 0) continue;
                    const std::int64_t row = (far_z ? z.high : z.low) * op.height + (far_y ? y.high : y.low);
                    visit(out, row * op.width + (far_x ? x.high : x.low), weight);
                }
                ++out;
            }
        }
    }
}

}  // namespace

void run(const Resize& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const bool forward = pass == Pass::forward;
    const auto from = forward ? b.src[0] : b.diff_dst;
    const auto to = forward ? b.dst : b.diff_src[0];
    if (to.empty()) return;
    const std::int64_t small = pixels(op);
    const std::int64_t large = elements(output_shape(op)) / op.channels;
    std::vector<double> sum(forward ? large : small);
    for (std::int64_t channel = 0; channel < batch * op.channels; ++channel) {
        std::ranges::fill(sum, 0.0);
        const std::int64_t first = channel * (forward ? small : large);
        for_each_pair(op, [&](std::int64_t out, std::int64_t in, double weight) {
            sum[forward ? out : in] += weight * from[first + (forward ? in : out)];
        });
        for (std::size_t i = 0; i < sum.size(); ++i) {
            to[channel * static_cast<std::int64_t>(sum.size()) + static_cast<std::int64_t>(i)] =
                static_cast<float>(sum[i]);
        }
    }
}

}  // namespace rehearse::kernels::reference
