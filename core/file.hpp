// SPDX-License-Identifier: Apache-2.0
// Whole files in and out, with the errors that a user can act on.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// InputError "path: why" when it is missing, a directory, or cannot be read.
std::string read_file(const std::string& path);

/// Through an OutputFile: a full disk or a crash never leaves half a file. InputError "path: why" when it cannot be
/// done; what was there before is then still there.
void replace_file(const std::string& path, std::string_view content);

}  // namespace rehearse
