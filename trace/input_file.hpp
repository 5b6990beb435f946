// SPDX-License-Identifier: Apache-2.0
// A file to read a trace from, and the words for what can be wrong with it.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trace/gzip_stream.hpp"

namespace rehearse::trace {

/// A file of which a read that fails is told: InputError "path: cannot be read: Input/output error".
class ReadBuffer : public std::filebuf {
public:
    explicit ReadBuffer(std::string path) : path_(std::move(path)) {}

protected:
    int_type underflow() override;
    std::streamsize xsgetn(char* to, std::streamsize count) override;

private:
    [[noreturn]] void refuse() const;
    std::string path_;
};

class InputFile {
public:
    /// InputError when missing, not a regular file, unreadable or empty. `right`: what errors say would be right.
    explicit InputFile(const std::string& path,
                       std::string_view right = "right would be a .pftrace or .json file that rehearse wrote");
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    const std::string& path() const { return path_; }
    /// Bytes of the file.
    std::int64_t size() const { return size_; }
    /// By its first bytes.
    bool is_gzip() const { return gzip_ != nullptr; }
    /// The text: of a gzip file what it holds.
    std::istream& stream() { return text_ ? *text_ : stream_; }
    /// The text's first bytes, at most `count`, which stay to be read. Before anything was read.
    std::string head(std::size_t count);
    /// Byte of the text.
    std::int64_t position();
    /// Bytes of the text, where they are known: of a gzip file at its end only.
    std::optional<std::int64_t> text_size() const;

    /// The three ways in which a file is refused, each an InputError.
    [[noreturn]] void is_not_a_trace(std::string_view what) const;
    [[noreturn]] void is_cut_off(std::string_view what) const;
    /// `offset`: byte of the text.
    [[noreturn]] void is_broken(std::int64_t offset, std::string_view what) const;

private:
    void look_for_gzip();

    std::string path_, right_;
    ReadBuffer buffer_;
    std::istream stream_{&buffer_};
    std::int64_t size_ = 0;
    std::unique_ptr<GzipBuffer> gzip_;
    std::unique_ptr<std::istream> text_;
};

}  // namespace rehearse::trace
