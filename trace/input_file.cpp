// SPDX-License-Identifier: Apache-2.0
#include "trace/input_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"

namespace rehearse::trace {

namespace fs = std::filesystem;

constexpr std::string_view right = "right would be a .pftrace or .json file that rehearse wrote";

InputFile::InputFile(const std::string& path) : path_(path) {
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
    stream_.open(path, std::ios::binary);
    if (!stream_) {
        throw InputError(fmt::format("{}: cannot read: {}: {}", path, std::generic_category().message(errno), right));
    }
    size_ = static_cast<std::int64_t>(fs::file_size(path, error));
    if (error) throw InputError(fmt::format("{}: cannot read: {}: {}", path, error.message(), right));
    if (size_ == 0) throw InputError(fmt::format("{}: the file is empty: {}", path, right));
}

std::int64_t InputFile::position() { return stream_.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in); }

void InputFile::is_not_a_trace(std::string_view what) const {
    throw InputError(fmt::format("{}: not a trace of Rehearse: {}: {}", path_, what, right));
}

void InputFile::is_cut_off(std::string_view what) const {
    throw InputError(fmt::format("{}: cut off at byte {}: {}: write or copy it again", path_, size_, what));
}

void InputFile::is_broken(std::int64_t offset, std::string_view what) const {
    throw InputError(fmt::format("{}: broken at byte {}: {}: {}", path_, offset, what, right));
}

}  // namespace rehearse::trace
