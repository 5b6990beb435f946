// SPDX-License-Identifier: Apache-2.0
// A measured device as if nobody had measured it: what likenesses are worth.
#pragma once

#include <memory>

#include "models/price_models.hpp"

namespace rehearse::models {

/// The device of `kernels` by its data sheet and another chip's kernels, as a likeness in models/devices.toml has it:
/// like a V100, with the error that those say; a V100 like a P100, in f16 like a T4. Null for processors, of which
/// there is one.
std::shared_ptr<const PriceModel> by_another_device(const ShippedKernels& kernels);

}  // namespace rehearse::models
