// SPDX-License-Identifier: Apache-2.0
// Files of samples read from a drive, not from the page cache: what a name, a request and a byte cost there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/file_system.hpp"

namespace rehearse::bench {

/// Samples in files, all of one size.
struct SampleFiles {
    std::vector<std::filesystem::path> paths;
    std::int64_t sample = 0;   // bytes
    std::int64_t a_file = 1;   // samples
    std::int64_t between = 0;  // bytes before each sample of a file, as headers of a tar file are
};

/// A folder of its own below `parent`, removed at the end with all that is in it. InputError where none can be made.
class ScratchFolder {
public:
    explicit ScratchFolder(const std::filesystem::path& parent);
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// Writes them, with random bytes, and waits until they are on the drive. BackendError where it takes them not.
SampleFiles write_samples(const std::filesystem::path& folder, const std::string& name, std::int64_t samples,
                          std::int64_t sample, std::int64_t a_file, std::int64_t between = 0);

/// Takes what the kernel keeps of the file out of its cache (posix_fadvise); names stay in it.
void forget(const std::filesystem::path& path);

/// Mean time of a sample: each once, in an order drawn from `seed`, by one read where it lies, none of it cached. A
/// file with one sample is opened for it, one with several stays open.
Seconds read_cold(const SampleFiles& files, std::uint64_t seed);
/// Files, and how a round reads them: the mean time of a sample.
struct ColdCase {
    std::vector<std::filesystem::path> paths;
    std::function<Seconds(int round)> read;
};
/// The median of each case over the rounds. A round has all cases in turn, each after its files were forgotten, so that
/// another user of the drive disturbs all of them alike.
std::vector<Seconds> cold_medians(const std::vector<ColdCase>& cases, int rounds);

/// Three cases that tell what a drive takes: files of 16 KiB, reads of 64 KiB and of 4 MiB.
std::vector<ColdCase> drive_cases(const std::filesystem::path& folder);
/// What their medians say. BackendError where larger reads took no longer.
FileSystem drive_of(const std::vector<Seconds>& medians);

}  // namespace rehearse::bench
