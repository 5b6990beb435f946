// SPDX-License-Identifier: Apache-2.0
// What convolutions take at least that no table of measured kernels has, and that go by no transform.
#pragma once

#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse {

/// Filters of one row or column, or with gaps, are products that gather what they read (prices/convolution/gemm.cpp):
/// in tiles, dealt out to a GPU's processors, at shares of the peak that such kernels of other shapes were measured at.
/// In f32, on GPUs whose convolutions were measured; 0 for all else.
Seconds least_gathered(const Problem& problem, const DeviceClass& device);

}  // namespace rehearse
