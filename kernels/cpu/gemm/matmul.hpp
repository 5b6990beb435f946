// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "gemm": dense layers, one or one for each expert, all passes.
const Backend& matmul();

}  // namespace rehearse::kernels::cpu
