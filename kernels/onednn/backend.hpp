// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::onednn {

/// oneDNN on the CPU, f32. Threads are OpenMP's: OMP_NUM_THREADS.
const Backend& backend();

}  // namespace rehearse::kernels::onednn
