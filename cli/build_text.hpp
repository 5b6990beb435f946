// SPDX-License-Identifier: Apache-2.0
// How this program was built.
#pragma once

#include <string_view>

namespace rehearse::cli {

/// Lines with the compiler, the libraries with their versions, and each option of the build with what it buys or why it
/// is off, as CMake's summary has them.
std::string_view build_text();

}  // namespace rehearse::cli
