// SPDX-License-Identifier: Apache-2.0
// What every algorithm of a convolution needs to know of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// A convolution with its derived sizes at hand. `group_*` are those of one group. An image is a
/// volume of one plane.
struct Convolution {
    Conv op;
    std::int64_t batch = 1;
    std::int64_t depth = 1, out_depth = 1;
    std::int64_t out_height = 1, out_width = 1;
    std::int64_t group_channels = 1, group_filters = 1;
    std::int64_t taps = 1;  // kernel_d * kernel_h * kernel_w

    explicit Convolution(const Problem& problem);
    std::int64_t in_pixels() const { return depth * op.height * op.width; }
    std::int64_t out_pixels() const { return out_depth * out_height * out_width; }
    std::int64_t weight_count() const { return op.filters * group_channels * taps; }  // the bias lies behind them
};

/// Why an algorithm that runs any convolution does not run this; empty if it does.
std::string refuse_all_but_convolutions(const Problem& problem, std::string_view algorithm);

/// Why an algorithm that runs any 2-D convolution does not run this; empty if it does.
std::string refuse_all_but_conv2d(const Problem& problem, std::string_view algorithm);

/// Planes of filters of all samples from the gradient of the output, as the backward passes read it: diff_dst itself
/// or, with a ReLU, what that passes on, in `room` for diff_room floats.
const float* diff_planes(const Convolution& conv, const Buffers& b, std::int64_t first, std::int64_t count,
                         float* room);
std::int64_t diff_room(const Convolution& conv, std::int64_t planes);

/// The gradient of the bias, behind that of the weights: the sum of the output's gradient over samples and pixels.
void sum_diff_bias(const Convolution& conv, const Buffers& b);

}  // namespace rehearse::kernels::cpu
