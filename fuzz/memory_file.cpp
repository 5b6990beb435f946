// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mman.h>

#include "fuzz/target.hpp"

namespace rehearse::fuzz {

MemoryFile::MemoryFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    require(file_ >= 0, "a file in memory");
    require(::write(file_, data, size) == static_cast<ssize_t>(size), "all of the input is in it");
}

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", file_); }

}  // namespace rehearse::fuzz
