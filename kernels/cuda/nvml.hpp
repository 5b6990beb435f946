// SPDX-License-Identifier: Apache-2.0
// How a GPU is run, by the library of nvidia-smi (NVML), which comes with the driver: opened when first asked for.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/device.hpp"

namespace rehearse::kernels::cuda {

/// Of the GPU at a PCI address, "0000:65:00"; why not, where the library is not there or refuses.
Clocks nvml_clocks(const std::string& pci_address);
/// In words what holds clocks down, of NVML's bits (nvml.h, "nvmlClocksEventReasons"); empty: nothing but idleness.
std::string held_down_by(std::uint64_t reasons);

}  // namespace rehearse::kernels::cuda
