// SPDX-License-Identifier: Apache-2.0
// What the autotuner found, kept in a SQLite file: for each host, as its fingerprint tells it apart, and each problem
// the fastest implementation. Several processes may read and write at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.hpp"
#include "core/units.hpp"
#include "kernels/choices.hpp"

namespace rehearse::kernels::tuned {

struct Winner {
    std::string problem;  // to_string(Problem)
    std::string backend, algorithm;
    int threads = 0;         // of the kernel; 0: as many as the caller has
    Seconds median;          // of a run
    Seconds runner_up;       // of the next best; 0: there was none
    Bytes scratch;           // that it takes
    Bytes scratch_limit;     // that it was found under
    std::int64_t tried = 0;  // implementations
    std::string date;        // 2026-01-31
    bool operator==(const Winner&) const = default;
};

struct Stored {
    std::string fingerprint;
    Winner winner;
};

/// Empty, or why this build keeps nothing: "built without SQLite (...)". Everything below throws it as a BackendError.
std::string_view absent();

/// All that is kept, of all hosts, in the order of fingerprint and problem. No file: nothing. InputError: the file is
/// not one of ours, damaged, or written by a later version; it is left as it is. BackendError: it cannot be read, or
/// another process holds it for longer than a minute.
std::vector<Stored> stored(const std::string& path);

/// What was found on the host with this fingerprint.
std::vector<Winner> load(const std::string& path, std::string_view fingerprint);

/// Adds the winners, all or none; one of the same fingerprint and problem is replaced, what else is there stays. Makes
/// the file and its folder where they are missing. Errors as stored().
void save(const std::string& path, std::string_view fingerprint, const std::vector<Winner>& winners);

/// The winners as choices. Left out: who is not in this build, and who was found under a limit of scratch memory that
/// tells nothing about `limit`: a winner under L is the winner under a smaller limit too, if it needs no more.
Choices choices(const std::vector<Winner>& winners, Bytes limit);

/// What a timing is true of: processor, SIMD targets, caches, versions of the kernel libraries, threads of a rank.
std::string fingerprint(int threads);

}  // namespace rehearse::kernels::tuned
