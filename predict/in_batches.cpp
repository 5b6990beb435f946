// SPDX-License-Identifier: Apache-2.0
#include "predict/in_batches.hpp"

#include <utility>

#include "prices/prices.hpp"

namespace rehearse::predict {

std::optional<InBatches> in_batches(const Problem& problem) {
    const Conv* dilated = as_conv2d(problem.op);
    if (dilated == nullptr || problem.pass == Pass::update) return {};
    const Window& w = dilated->window;
    if (w.stride_h != 1 || w.stride_w != 1 || (w.dilation_h == 1 && w.dilation_w == 1)) return {};
    const auto each = [](std::int64_t padded, std::int64_t rate) { return (padded + rate - 1) / rate; };
    Conv conv = *dilated;
    conv.bias = conv.relu = false;
    conv.height = each(dilated->height + w.pad_top + w.pad_bottom, w.dilation_h);
    conv.width = each(dilated->width + w.pad_left + w.pad_right, w.dilation_w);
    conv.window = {.kernel_h = w.kernel_h, .kernel_w = w.kernel_w};
    const Shape made = output_shape(conv);
    InBatches in{.problem = {conv, problem.pass, problem.batch, problem.type},
                 .whole = {dilated->channels, dilated->height, dilated->width},
                 .parts = {conv.channels, conv.height, conv.width},
                 .images = w.dilation_h * w.dilation_w};
    in.problem.batch *= in.images;
    if (problem.pass == Pass::backward_data) {
        std::swap(conv.channels, conv.filters);
        conv.height = made[1];
        conv.width = made[2];
        conv.window.pad_top = conv.window.pad_bottom = w.kernel_h - 1;
        conv.window.pad_left = conv.window.pad_right = w.kernel_w - 1;
        in.problem.op = conv;
        in.problem.pass = Pass::forward;
    } else if (problem.pass == Pass::backward_weights) {
        in.whole = output_shape(problem.op);
        in.parts = made;
    }
    return in;
}

Seconds copied_together(const InBatches& in, const Problem& problem, const DeviceClass& device) {
    const auto half = [&](const Shape& shape, std::int64_t images) {  // of a pass that reads and writes it
        const Problem copy{Activation{Nonlinearity::relu, shape}, Pass::forward, problem.batch * images, problem.type};
        return 0.5 * price(copy, device).time;
    };
    const Seconds time = half(in.whole, 1) + half(in.parts, in.images);
    if (problem.pass != Pass::forward) return time;
    return time + half(output_shape(problem.op), 1) + half(output_shape(in.problem.op), in.images);
}

}  // namespace rehearse::predict
