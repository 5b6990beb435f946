// SPDX-License-Identifier: Apache-2.0
// A convolution as plain numbers: what library algorithms are priced by, whatever struct an operator is stored in.
#pragma once

#include <optional>

#include "core/op.hpp"

namespace rehearse::prices {

/// One pass of a 2-D convolution as the forward convolution that libraries run for it: `backward_data` with channels
/// and filters exchanged; `backward_weights` keeps its sizes and says so in `pass`.
struct ConvolutionShape {
    double batch = 1, channels = 1, filters = 1;  // of all groups together
    double height = 1, width = 1;                 // of the image that is read
    double out_height = 1, out_width = 1;
    double kernel_height = 1, kernel_width = 1;
    double stride_height = 1, stride_width = 1;
    double groups = 1;
    bool dilated = false;
    Pass pass = Pass::forward;

    double outputs() const { return batch * out_height * out_width; }
    double taps() const { return kernel_height * kernel_width; }
    /// Multiply-adds of a direct computation, without rounding.
    double products() const { return outputs() * filters * channels / groups * taps(); }
    bool skips() const { return kernel_height < stride_height || kernel_width < stride_width; }
    /// Of the gradient of images whose windows move by several pixels: `filters` values a pixel of the image.
    bool spreads() const { return pass == Pass::backward_data && stride_height * stride_width > 1; }
    double image_values() const;
    /// Values of images and filters that cross the memory at least once. Of images whose windows skip pixels only what
    /// they touch, except where the gradient of every pixel is written.
    double values() const;
};

enum class Volumes {
    refused,
    folded  // an image of as many pixels, one plane below the other, and a filter of as many taps
};
/// Nothing when `problem` is no 2-D convolution (or 3-D one, where volumes are folded), or is an update.
std::optional<ConvolutionShape> convolution_shape(const Problem& problem, Volumes volumes = Volumes::refused);

}  // namespace rehearse::prices
