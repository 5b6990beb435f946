// SPDX-License-Identifier: Apache-2.0
// Timelines to and from files. The format follows the file's ending: .pftrace (Perfetto protobuf), .json (Chrome),
// .csv (one row an event, written only). Times are whole nanoseconds in all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dependencies.hpp"
#include "core/error.hpp"
#include "core/timeline.hpp"

namespace rehearse::trace {

enum class Format { perfetto, chrome, csv, links };  // links: CSV, one row a LinkUse
/// By the file's ending; InputError names the endings that are known.
Format format_of(std::string_view path);

/// Writes to a temporary name beside it and renames, so that a full disk never leaves half a file; a device or a pipe
/// is written directly. Several timelines lie on one time axis, as processes "predicted: rank 0", "measured: rank 0".
/// InputError when the path cannot be written.
void write(const std::vector<Timeline>& timelines, const std::string& path, Format format);
void write(const Timeline& timeline, const std::string& path);
/// With what its steps wait for, where the format has room for it (Perfetto): read again by scan_perfetto.
void write(const Timeline& timeline, std::span<const Dependencies> dependencies, const std::string& path);

/// The one timeline of a file that write wrote (Perfetto or Chrome, told apart by the content). Of a file with several,
/// "both.pftrace#measured" picks one by its label: "predicted" or "measured", "predicted 2" the second of a kind.
/// InputError: missing, not a trace, cut off or broken (and at which byte), or more than one timeline and none picked.
Timeline read(const std::string& path);
/// A Chrome trace that we did not write: of a profiler, perhaps (trace/recording.hpp).
struct OtherProgram : InputError {
    using InputError::InputError;
};
/// All timelines of a file, in the order in which they were written.
std::vector<Timeline> read_all(const std::string& path);

}  // namespace rehearse::trace
