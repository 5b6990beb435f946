// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Our own algorithms, each a Backend named "cpu", the preferred first.
std::span<const Backend* const> backends();
/// Those that go before other libraries: of what oneDNN does in several steps, or not at all.
std::span<const Backend* const> preferred();

}  // namespace rehearse::kernels::cpu
