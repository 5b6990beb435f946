// SPDX-License-Identifier: Apache-2.0
// File systems by name: models/file_systems/*.toml, or a file of one's own. A file system says which machines mount it
// as which storage tier, since several may.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.hpp"

namespace rehearse::models {

/// Those that are built in.
const std::vector<FileSystem>& file_systems();
/// By its name, or of FILE.toml. InputError where there is none, or with file and line what is wrong in it.
FileSystem load_file_system(const std::string& name);
FileSystem read_file_system(std::string_view text, const std::string& origin);
/// What the machine mounts as this tier. InputError where no file system says that it is mounted there.
FileSystem mounted_file_system(const Machine& machine, const std::string& tier);

}  // namespace rehearse::models
