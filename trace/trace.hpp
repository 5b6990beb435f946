// SPDX-License-Identifier: Apache-2.0
// Timelines to and from files. The format follows the file's ending: .pftrace (Perfetto protobuf), .json (Chrome).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/timeline.hpp"

namespace rehearse::trace {

enum class Format { perfetto, chrome, csv };
/// By the file's ending; InputError names the endings that are known.
Format format_of(std::string_view path);

/// Writes to a temporary name beside it and renames, so that a full disk never leaves half a file.
/// InputError when the path cannot be written.
void write(const std::vector<Timeline>& timelines, const std::string& path, Format format);
inline void write(const Timeline& timeline, const std::string& path) { write({timeline}, path, format_of(path)); }

/// Reads what write wrote (Perfetto or Chrome). InputError: missing, not a trace, or cut off, and where.
Timeline read(const std::string& path);

}  // namespace rehearse::trace
