// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Our own algorithms, each a Backend named "cpu", the preferred first.
std::span<const Backend* const> backends();

}  // namespace rehearse::kernels::cpu
