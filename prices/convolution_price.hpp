// SPDX-License-Identifier: Apache-2.0
// Convolutions of a sort that no table has, of any device: with groups (depthwise ones among them), of volumes that
// move by several pixels. The bound of a library's algorithms, and what it is known to lie below.
#pragma once

#include <optional>

#include "core/machine.hpp"
#include "prices/prices.hpp"

namespace rehearse {

/// The least of a GPU library's algorithms on the device's data sheet, times what convolutions take beyond it, with a
/// band that says how little is known (docs/kernel_prices.md): of images and volumes, all passes, without bias. Nothing
/// for other operators, for updates, for processors, and for devices of which neither peak nor count of processors is
/// known.
std::optional<Price> convolution_price(const Problem& problem, const DeviceClass& device);

/// The same of the algorithms that transform nothing (implicit GEMM and direct), of a convolution whose type has no
/// matrix units on the device: the least that a volume takes, for which libraries have no fast transform. Nothing for
/// others.
std::optional<Price> price_without_transforms(const Problem& problem, const DeviceClass& device);

/// Of the gradient of a volume's weights on a device whose library cuts it between samples alone (`volumes` of a
/// machine file): the least that it takes. Nothing for others.
std::optional<Price> price_by_sample(const Problem& problem, const DeviceClass& device);

/// Whether it has groups: of such a one no other price knows more.
bool has_groups(const Problem& problem);

}  // namespace rehearse
