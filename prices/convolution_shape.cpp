// SPDX-License-Identifier: Apache-2.0
#include "prices/convolution_shape.hpp"

#include <algorithm>
#include <utility>

namespace rehearse::prices {

double ConvolutionShape::image_values() const {
    if (spreads()) return batch * filters * height * width;
    return batch * channels * std::min(height, out_height * kernel_height) * std::min(width, out_width * kernel_width);
}

double ConvolutionShape::values() const {
    return image_values() + outputs() * (spreads() ? channels : filters) + filters * channels / groups * taps();
}

std::optional<ConvolutionShape> convolution_shape(const Problem& problem, Volumes volumes) {
    const auto* conv = std::get_if<Conv>(&problem.op);
    if (conv == nullptr || problem.pass == Pass::update) return std::nullopt;
    const bool planes = conv->depth > 0;
    if (planes && volumes == Volumes::refused) return std::nullopt;
    const Window& w = conv->window;
    const Shape out = output_shape(problem.op);
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    ConvolutionShape shape;
    shape.batch = number(problem.batch);
    shape.channels = number(conv->channels);
    shape.filters = number(conv->filters);
    shape.height = number(conv->height * (planes ? conv->depth : 1));
    shape.width = number(conv->width);
    shape.out_height = number(planes ? out[1] * out[2] : out[1]);
    shape.out_width = number(out.back());
    shape.kernel_height = number(w.kernel_h * (planes ? w.kernel_d : 1));
    shape.kernel_width = number(w.kernel_w);
    shape.stride_height = number(w.stride_h * (planes ? w.stride_d : 1));
    shape.stride_width = number(w.stride_w);
    shape.groups = number(conv->groups);
    shape.dilated = w.dilation_h != 1 || w.dilation_w != 1 || (planes && w.dilation_d != 1);
    shape.pass = problem.pass;
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
