// SPDX-License-Identifier: Apache-2.0
// What convolutional networks since 2017 are built of, named as torchvision's modules.
#pragma once

#include <cstdint>
#include <string>

#include "models/builder.hpp"

namespace rehearse::models {

/// A name of Elementwise's functions, "relu", "sigmoid", "gelu"; "relu6" is clip between 0 and 6; "": the input itself.
int function_of(NetworkBuilder& b, const std::string& name, int from, const std::string& function);

/// How a network's batch normalization is set, and which function follows.
struct ConvStyle {
    std::string function = "relu";
    double epsilon = 1e-5, momentum = 0.1;
};

/// A convolution (padded so that a stride of 1 keeps the image), its normalization and a function: NAME.0, .1 and .2.
int conv_norm(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, std::int64_t kernel,
              std::int64_t stride, std::int64_t groups, const ConvStyle& style);

/// Squeeze-and-excitation (Hu et al. 2018): each channel is weighed by what two 1x1 convolutions, the first to
/// `squeeze` channels, make of all channels' means.
int squeeze_excite(NetworkBuilder& b, const std::string& name, int from, std::int64_t squeeze,
                   const std::string& function, const std::string& gate);

/// The multiple of `divisor` next to `value`, not more than a tenth below it (Howard et al. 2017's code).
std::int64_t make_divisible(double value, std::int64_t divisor);

/// Global average, flatten, dense layers and loss of a classifier, with dropout in front of the last.
void classify(NetworkBuilder& b, int from, const std::string& name, double dropped, std::int64_t classes = 1000);

}  // namespace rehearse::models
