// SPDX-License-Identifier: Apache-2.0
// Operators that a device's models do not know, priced by what the same device does that is like them: a product's
// gradient by the product that it is, a normalization's gradient by its forward pass, attention and a loss by the
// products and the passes over their scores that they are where nothing is fused.
#pragma once

#include <optional>

#include "prices/prices.hpp"

namespace rehearse {

/// Returns the price of a product's or a layer normalization's gradient where the device's board was measured forward:
/// of the product that the gradient is, which libraries run by the same kernels, and of a normalization that is as far
/// beyond its bytes as the forward pass. Nothing for other problems and devices.
std::optional<Price> gradient_price(const Problem& problem, const DeviceClass& device);

/// Returns the price of attention, or of a GPU's loss over scores, that is not fused, on a device without tiles
/// (prices/tile_model.hpp); there, too, that of a product in f16 on lanes, which is what it takes in f32. Nothing for
/// other problems, and where the device has a share of its own for the kind. InputError as price().
std::optional<Price> unfused_price(const Problem& problem, const DeviceClass& device);

/// Passes over the scores that a loss in f32 makes, which needs no conversions: forward the largest and the sum of
/// exponentials are read for, then read and written (cunn_SoftMaxForward of PyTorch's SoftMax.cu); backward the
/// gradient of the chosen is written among zeros, read for its sum, and read with the output to be written
/// (nll_loss_backward, cunn_SoftMaxBackward).
constexpr double loss_passes_without_casts(Pass pass) { return pass == Pass::forward ? 4 : 5; }

}  // namespace rehearse
