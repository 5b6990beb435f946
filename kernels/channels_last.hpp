// SPDX-License-Identifier: Apache-2.0
// Convolutions of tensors whose channels lie together ("NHWC"), as tensor cores take them. Their Buffers are those of
// backend.hpp but for the order of elements: src, dst and their gradients are {batch, pixels, channels}, weights and
// their gradient {filters, taps, channels of a group}, then the bias. All begin at whole 16 bytes.
#pragma once

#include <memory>
#include <span>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// Those of the device "cuda", on its memory; none without CUDA in the build. Networks are not run by them yet.
std::span<const Backend* const> channels_last();

/// The same convolution for NCHW buffers of the host: `backend`'s tensors lie on the host, too, channels last. For
/// checks and tests, not for speed. `backend` outlives it.
std::unique_ptr<Backend> channels_first(const Backend& backend);
/// Of one of channels_last(), on buffers of the host.
const Backend& checked_channels_last(const Backend& backend);

}  // namespace rehearse::kernels
