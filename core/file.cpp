// SPDX-License-Identifier: Apache-2.0
#include "core/file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "core/output_file.hpp"

namespace rehearse {

namespace {

InputError failure(const std::string& path, std::string_view what) {
    return InputError(fmt::format("{}: {}: {}", path, what, errno != 0 ? std::strerror(errno) : "unknown reason"));
}

}  // namespace

std::string read_file(const std::string& path) {
    if (std::filesystem::is_directory(path)) throw InputError(fmt::format("{}: is a directory, not a file", path));
    errno = 0;
    std::ifstream file{path, std::ios::binary};
    if (!file) throw failure(path, "cannot be opened");
    std::ostringstream content;
    content << file.rdbuf();
    if (file.bad() || content.bad()) throw failure(path, "cannot be read");
    return std::move(content).str();
}

void replace_file(const std::string& path, std::string_view content) {
    OutputFile file{path};
    file.append(content);
    file.commit();
}

}  // namespace rehearse
