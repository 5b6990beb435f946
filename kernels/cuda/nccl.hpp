// SPDX-License-Identifier: Apache-2.0
// Sums among GPUs by NCCL, each rank with one of its own, on a stream beside the kernels. The library is opened when it
// is first needed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/device.hpp"

namespace rehearse::kernels::cuda {

/// Empty, or why there is none.
std::string nccl_refusal();
std::vector<std::byte> nccl_group_name();
std::unique_ptr<DeviceGroup> nccl_join(std::span<const std::byte> name, std::int64_t rank, std::int64_t size);

}  // namespace rehearse::kernels::cuda
