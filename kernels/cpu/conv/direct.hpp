// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "direct": any 2-D convolution, all passes.
const Backend& direct();

}  // namespace rehearse::kernels::cpu
