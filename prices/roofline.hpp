// SPDX-License-Identifier: Apache-2.0
// The two times that a kernel cannot be faster than by a device's data sheet (Williams, Waterman and Patterson 2009).
#pragma once

#include <optional>

#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse {

/// Returns the bytes that a pass moves in the kernels of the device's libraries. They are bytes_moved's, but for the
/// gradient of a normalization that a ReLU was joined to: where our kernels read the output for the ReLU's slope, twice
/// (once with a shortcut), those of NVIDIA tell the sign from the input that they read anyway, or, with a shortcut,
/// read a bit a value (relu_bwd in contrib/csrc/groupbn/nhwc_batch_norm_kernel.h of NVIDIA/apex; cuDNN's
/// CUDNN_BATCHNORM_OPS_BN_ACTIVATION and its reserve space).
Bytes library_bytes(const Problem& problem, const DeviceClass& device);

/// Seconds at the device's peak rate for the problem's type, and at its memory bandwidth with each byte moved once;
/// nothing of what the device does not have.
struct RooflineTimes {
    std::optional<Seconds> compute, memory;
};
RooflineTimes roofline_times(const Problem& problem, const DeviceClass& device);

}  // namespace rehearse
