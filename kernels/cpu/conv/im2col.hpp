// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "im2col": any convolution, all passes.
const Backend& im2col();

}  // namespace rehearse::kernels::cpu
