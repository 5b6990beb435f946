// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithms "winograd4", "winograd6", "winograd2": 3 x 3 convolutions of stride 1, all passes.
std::span<const Backend* const> winograd();

}  // namespace rehearse::kernels::cpu
