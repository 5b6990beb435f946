// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "batchnorm": batch normalization in training mode, with what is fused to it, both passes.
const Backend& batchnorm();

}  // namespace rehearse::kernels::cpu
