// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is complete.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

class OutputFile {
public:
    /// InputError when the path is a directory or a file beside it cannot be made.
    explicit OutputFile(const std::string& path);
    /// Without commit, nothing is left behind.
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// Where it lies until then, for a library that opens files itself; empty for a device or a pipe.
    const std::string& unfinished_path() const { return temporary_; }
    void append(std::string_view bytes);
    void commit();

private:
    void spill();
    [[noreturn]] void fail(int error) const;

    std::string path_;       // as the user gave it
    std::string target_;     // links resolved
    std::string temporary_;  // empty: a device or a pipe, written directly
    std::string buffer_;
    int file_ = -1;
};

}  // namespace rehearse
