// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rehearse::kernels::cpu {

/// Of this folder's sources, the compiler and its flags: a few hexadecimal digits that change with any of them
/// (cmake/RehearseRevision.cmake).
std::string_view revision();

}  // namespace rehearse::kernels::cpu
