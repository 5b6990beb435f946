// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/backend.hpp"

namespace rehearse::kernels::onednn {

/// oneDNN on the CPU, f32. Threads are OpenMP's: OMP_NUM_THREADS.
const Backend& backend();

/// Its ways to convolve, each by itself: "direct" on blocks of channels, "gemm" on NCHW, "winograd".
std::span<const Backend* const> convolutions();

}  // namespace rehearse::kernels::onednn
