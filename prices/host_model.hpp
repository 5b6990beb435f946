// SPDX-License-Identifier: Apache-2.0
// A host that was calibrated prices what it was not measured on, too: each group of operators by those of its kernels
// that were (prices/host_point.hpp).
#pragma once

#include <memory>

#include "core/machine.hpp"
#include "prices/price_model.hpp"

namespace rehearse {

/// Of `device`'s measured problems, beside the factors that it has already. The device's own model where it has kernels
/// of others, is no host's core, or lacks what a roofline needs.
std::shared_ptr<const PriceModel> host_model(const DeviceClass& device);

/// The measured problems of one group, those of `device` that host_model takes.
MeasuredKernels host_kernels(const DeviceClass& device, std::string_view group, DataType type);

}  // namespace rehearse
