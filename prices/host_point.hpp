// SPDX-License-Identifier: Apache-2.0
// What a kernel takes on a host whose other kernels were measured: features and lower bounds of every operator, in
// three groups whose members speak for each other (docs/calibration.md).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "prices/kernel_point.hpp"
#include "prices/price_model.hpp"

namespace rehearse {

/// "convolutions" (of images and volumes, transposed ones too), "products" (dense layers, batches of products,
/// attention), "rows" (all that moves values: normalization, activations, pooling, losses, updates).
std::string_view host_group(const Op& op);
/// The three names.
std::vector<std::string_view> host_groups();

/// Nothing where there is neither an operation nor a byte.
std::optional<KernelPoint> host_point(const Problem& problem, const DeviceSheet& sheet);

/// What interpolates the kernels of a group; its lengths were learned on a host of ours.
std::vector<Expert> host_experts(std::string_view group);

}  // namespace rehearse
