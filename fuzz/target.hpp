// SPDX-License-Identifier: Apache-2.0
// What the targets share: what a reader may do with bytes that nobody vouches for.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace rehearse::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// By the line in its target where a reader is called: how many of its inputs it took.
inline std::map<int, std::size_t>& taken() {
    static std::map<int, std::size_t> all;
    return all;
}

/// Calls `read`, which returns or refuses its input. Whatever else it throws ends the process.
template <typename Read>
int refusing(const Read& read, int line = __builtin_LINE()) {
    static std::size_t& count = taken()[line];
    try {
        read();
        ++count;
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

/// A file with a name in a folder of its own, for libraries that resolve links (HDF5) or write beside it (SQLite): in
/// memory where the system has a folder there, gone at the end.
class NamedFile {
public:
    NamedFile(const std::uint8_t* data, std::size_t size);
    ~NamedFile();
    NamedFile(const NamedFile&) = delete;
    NamedFile& operator=(const NamedFile&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace rehearse::fuzz
