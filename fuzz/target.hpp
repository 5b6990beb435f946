// SPDX-License-Identifier: Apache-2.0
// What the targets share: what a reader may do with bytes that nobody vouches for.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace rehearse::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Calls `read`, which returns or refuses its input. Whatever else it throws ends the process.
template <typename Read>
int refusing(const Read& read) {
    try {
        read();
    } catch (const InputError&) {
    } catch (const InfeasibleError&) {
    }
    return 0;
}

/// A regular file in memory that holds the input, for readers that want a path; gone at the end.
class MemoryFile {
public:
    MemoryFile(const std::uint8_t* data, std::size_t size);
    ~MemoryFile() { ::close(file_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const;

private:
    int file_;
};

}  // namespace rehearse::fuzz
