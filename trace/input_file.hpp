// SPDX-License-Identifier: Apache-2.0
// A file to read a trace from, and the words for what can be wrong with it.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace rehearse::trace {

class InputFile {
public:
    /// InputError when missing, not a regular file, unreadable or empty.
    explicit InputFile(const std::string& path);

    const std::string& path() const { return path_; }
    std::int64_t size() const { return size_; }
    std::istream& stream() { return stream_; }
    std::int64_t position();

    /// The three ways in which a file is refused, each an InputError.
    [[noreturn]] void is_not_a_trace(std::string_view what) const;
    [[noreturn]] void is_cut_off(std::string_view what) const;
    [[noreturn]] void is_broken(std::int64_t offset, std::string_view what) const;

private:
    std::string path_;
    std::ifstream stream_;
    std::int64_t size_ = 0;
};

}  // namespace rehearse::trace
