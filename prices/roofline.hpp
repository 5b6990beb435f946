// SPDX-License-Identifier: Apache-2.0
// The two times that a kernel cannot be faster than by a device's data sheet (Williams, Waterman and Patterson 2009).
#pragma once

#include <optional>

#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse {

/// Returns the bytes that a pass moves in the kernels of the device's libraries. They are bytes_moved's, but for
/// normalizations that a ReLU was joined to, as NVIDIA has them (contrib/csrc/groupbn/nhwc_batch_norm_kernel.h and
/// batch_norm.h of NVIDIA/apex; cuDNN's CUDNN_BATCHNORM_SPATIAL_PERSISTENT with CUDNN_BATCHNORM_OPS_BN_ACTIVATION):
/// - the gradient tells the ReLU's sign from the input that it reads anyway or, with a shortcut, from a bit a value,
///   where our kernels read the output, twice or once;
/// - in 16 bits the processors, where it is known how many there are, keep what they have read last between the
///   statistics and their use, so that it is not read again.
Bytes library_bytes(const Problem& problem, const DeviceClass& device);

/// Seconds at the device's peak rate for the problem's type, and at its memory bandwidth with each byte moved once;
/// nothing of what the device does not have.
struct RooflineTimes {
    std::optional<Seconds> compute, memory;
};
RooflineTimes roofline_times(const Problem& problem, const DeviceClass& device);

}  // namespace rehearse
