// SPDX-License-Identifier: Apache-2.0
#include "prices/gathered.hpp"

#include <algorithm>

#include "prices/convolution/families.hpp"
#include "prices/convolution_shape.hpp"
#include "prices/price_model.hpp"

namespace rehearse {

Seconds least_gathered(const Problem& problem, const DeviceClass& device) {
    const Conv* conv = as_conv2d(problem.op);
    const bool gathers =
        conv != nullptr && conv->window.taps() > 1 && conv->window.stride_h * conv->window.stride_w == 1;
    if (!gathers || device.host || device.model == nullptr || problem.type != DataType::f32) return Seconds{0};
    const auto is_known = [&](const MeasuredKernels& k) { return k.kind == "conv2d" && k.type == problem.type; };
    const auto known = std::ranges::find_if(device.model->kernels(), is_known);
    const auto shape = prices::convolution_shape(problem);
    if (known == device.model->kernels().end() || !shape) return Seconds{0};
    const DeviceSheet& sheet = known->sheet;
    const auto tiled = prices::implicit_gemm(
        *shape,
        {.peak = sheet.peak, .bandwidth = sheet.bandwidth, .processors = static_cast<double>(sheet.processors)});
    return tiled ? tiled->time : Seconds{0};
}

}  // namespace rehearse
