// SPDX-License-Identifier: Apache-2.0
#include "core/file.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.hpp"
#include "core/output_file.hpp"

namespace rehearse {

namespace {

InputError failure(const std::string& path, std::string_view what) {
    return InputError(fmt::format("{}: {}: {}", path, what, errno != 0 ? std::strerror(errno) : "unknown reason"));
}

}  // namespace

std::string read_file(const std::string& path) {
    if (std::error_code unknown; std::filesystem::is_directory(path, unknown))
        throw InputError(fmt::format("{}: is a directory, not a file", path));
    std::error_code unknown;
    if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown)) {
        throw InputError(fmt::format(
            "{}: is a device or a pipe, which may never end: give a file (copy what it gives into one)", path));
    }
    constexpr std::uintmax_t most = std::uintmax_t{1} << 31U;  // protobuf, and with it ONNX, takes no more
    if (const std::uintmax_t size = std::filesystem::file_size(path, unknown); !unknown && size > most) {
        throw InputError(fmt::format("{}: is of {} bytes; what is read here has at most {}", path, size, most));
    }
    errno = 0;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rbe"), &std::fclose};
    if (file == nullptr) throw failure(path, "cannot be opened");
    std::string content;
    std::array<char, 1U << 16U> block;
    while (std::feof(file.get()) == 0) {
        content.append(block.data(), std::fread(block.data(), 1, block.size(), file.get()));
        if (std::ferror(file.get()) == 0) continue;
        if (errno != EINTR) throw failure(path, "cannot be read");
        std::clearerr(file.get());
    }
    // Editors on Windows begin a text with a byte order mark; no format that is read here begins so.
    if (constexpr std::string_view mark = "\xef\xbb\xbf"; content.starts_with(mark)) content.erase(0, mark.size());
    return content;
}

void replace_file(const std::string& path, std::string_view content) {
    OutputFile file{path};
    file.append(content);
    file.commit();
}

}  // namespace rehearse
