// SPDX-License-Identifier: Apache-2.0
#include "trace/input_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"

namespace rehearse::trace {

namespace fs = std::filesystem;

ReadBuffer::int_type ReadBuffer::underflow() {
    try {
        return std::filebuf::underflow();
    } catch (const std::ios_base::failure&) {
        refuse();
    }
}

std::streamsize ReadBuffer::xsgetn(char* to, std::streamsize count) {
    try {
        return std::filebuf::xsgetn(to, count);
    } catch (const std::ios_base::failure&) {
        refuse();
    }
}

void ReadBuffer::refuse() const {
    throw InputError(fmt::format("{}: cannot be read: {}", path_, std::generic_category().message(errno)));
}

InputFile::InputFile(const std::string& path, std::string_view right) : path_(path), right_(right), buffer_(path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        const std::string why = error ? error.message() : "No such file or directory";
        throw InputError(fmt::format("{}: cannot read: {}: {}", path, why, right));
    }
    if (fs::is_directory(status)) throw InputError(fmt::format("{}: cannot read: it is a directory: {}", path, right));
    if (!fs::is_regular_file(status)) {
        throw InputError(fmt::format("{}: cannot read: it is a device or a pipe: {}", path, right));
    }
    stream_.exceptions(std::ios::badbit);  // what refuse() throws comes out of istream::read, too
    if (buffer_.open(path, std::ios::in | std::ios::binary) == nullptr) {
        throw InputError(fmt::format("{}: cannot read: {}: {}", path, std::generic_category().message(errno), right));
    }
    size_ = static_cast<std::int64_t>(fs::file_size(path, error));
    if (error) throw InputError(fmt::format("{}: cannot read: {}: {}", path, error.message(), right));
    if (size_ == 0) throw InputError(fmt::format("{}: the file is empty: {}", path, right));
    look_for_gzip();
}

void InputFile::look_for_gzip() {
    if (head(2) != "\x1f\x8b") return;
    gzip_ = std::make_unique<GzipBuffer>(
        stream_, GzipBuffer::Failures{[this](std::string_view what) { is_cut_off(what); },
                                      [this](std::int64_t byte, std::string_view what) {
                                          throw InputError(fmt::format("{}: broken at byte {}: {}: copy it again",
                                                                       path_, byte, what));
                                      }});
    text_ = std::make_unique<std::istream>(gzip_.get());
}

std::string InputFile::head(std::size_t count) {
    if (gzip_) {
        gzip_->sgetc();
        return std::string{gzip_->buffered().substr(0, count)};
    }
    std::string bytes(count, '\0');
    stream_.read(bytes.data(), static_cast<std::streamsize>(count));
    bytes.resize(static_cast<std::size_t>(stream_.gcount()));
    stream_.clear();
    stream_.seekg(0);
    return bytes;
}

std::int64_t InputFile::position() {
    if (gzip_) return gzip_->text_position();
    return stream_.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in);
}

std::optional<std::int64_t> InputFile::text_size() const {
    if (!gzip_) return size_;
    if (!gzip_->ended()) return std::nullopt;
    return gzip_->text_position();
}

void InputFile::is_not_a_trace(std::string_view what) const {
    throw InputError(fmt::format("{}: not a trace of Rehearse: {}: {}", path_, what, right_));
}

void InputFile::is_cut_off(std::string_view what) const {
    throw InputError(fmt::format("{}: cut off at byte {}: {}: write or copy it again", path_, size_, what));
}

void InputFile::is_broken(std::int64_t offset, std::string_view what) const {
    throw InputError(fmt::format("{}: broken at byte {}{}: {}: {}", path_, offset,
                                 gzip_ ? " of the text inside gzip" : "", what, right_));
}

}  // namespace rehearse::trace
