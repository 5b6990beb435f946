// SPDX-License-Identifier: Apache-2.0
// Programs that this one starts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace rehearse::cluster {

/// Starts `words` in a process group of its own, with stdout and stderr into `log`. It keeps to the given of the cores
/// that this process may use; none given: to all of them. BackendError when it cannot be started.
pid_t start_child(const std::vector<std::string>& words, const std::filesystem::path& log,
                  std::span<const std::int64_t> cores);

/// How many cores this process may use.
std::int64_t usable_cores();

/// Ends the group of a child: SIGTERM, and SIGKILL after five seconds; returns when it has ended.
void end_child(pid_t group);

}  // namespace rehearse::cluster
