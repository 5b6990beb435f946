// SPDX-License-Identifier: Apache-2.0
#include "prices/convolution_shape.hpp"

#include <utility>

namespace rehearse::prices {

std::optional<ConvolutionShape> convolution_shape(const Problem& problem) {
    const Conv* conv = as_conv2d(problem.op);
    if (conv == nullptr || problem.pass == Pass::update) return std::nullopt;
    const Window& window = conv->window;
    const Shape out = output_shape(problem.op);
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    ConvolutionShape shape{number(problem.batch),
                           number(conv->channels),
                           number(conv->filters),
                           number(conv->height),
                           number(conv->width),
                           number(out[1]),
                           number(out[2]),
                           number(window.kernel_h),
                           number(window.kernel_w),
                           number(window.stride_h),
                           number(window.stride_w),
                           number(conv->groups),
                           window.dilation_h != 1 || window.dilation_w != 1,
                           problem.pass};
    // The gradient of the images is a convolution of the gradient of the results. Of one that skips pixels each
    // gradient is read once and spread over them: the arithmetic stays that of the results.
    if (problem.pass == Pass::backward_data) {
        std::swap(shape.channels, shape.filters);
        if (shape.stride_height == 1 && shape.stride_width == 1) {
            std::swap(shape.height, shape.out_height);
            std::swap(shape.width, shape.out_width);
        }
    }
    return shape;
}

}  // namespace rehearse::prices
