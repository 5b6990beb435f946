// SPDX-License-Identifier: Apache-2.0
#include "core/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/error.hpp"

namespace rehearse {

namespace fs = std::filesystem;

namespace {

// Makes a file beside `target` under a name that nobody could have put a link at, with the rights of the file that it
// will replace.
std::pair<std::string, int> make_beside(const std::string& target) {
    std::random_device random;
    int file = -1;
    std::string name;
    for (int tries = 0; tries < 100; ++tries) {
        name = fmt::format("{}.{:08x}.part", target, random());
        file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (file >= 0 || errno != EEXIST) break;
    }
    struct stat old {};
    if (file >= 0 && ::stat(target.c_str(), &old) == 0) ::fchmod(file, old.st_mode & 0777U);
    return {name, file};
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path), target_(path) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (path.empty()) throw InputError("'': cannot be written: the path is empty: give a file name");
    if (fs::is_directory(status)) {
        throw InputError(fmt::format("{}: cannot be written: it is a directory: give a file name in it", path));
    }
    if (!fs::status_known(status)) {  // a name that is too long, links in a circle
        throw InputError(fmt::format("{}: cannot be written: {}: give another path", path, ignored.message()));
    }
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);  // /dev/stdout: renaming over it would replace the device
    } else {
        if (fs::exists(status) && fs::is_symlink(fs::symlink_status(path, ignored))) {
            target_ = fs::canonical(path, ignored).string();
        }
        std::tie(temporary_, file_) = make_beside(target_);
    }
    if (file_ < 0) fail(errno);
}

OutputFile::~OutputFile() {
    if (file_ < 0) return;
    ::close(file_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::append(std::string_view bytes) {
    constexpr std::size_t enough = 1U << 20U;
    buffer_ += bytes;
    if (buffer_.size() >= enough) spill();
}

void OutputFile::spill() {
    std::string_view rest = buffer_;
    while (!rest.empty()) {
        const ssize_t written = ::write(file_, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(errno);
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
    buffer_.clear();
}

void OutputFile::commit() {
    spill();
    const int file = std::exchange(file_, -1);
    if (::close(file) != 0 || (!temporary_.empty() && ::rename(temporary_.c_str(), target_.c_str()) != 0)) {
        const int error = errno;
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
        fail(error);
    }
}

void OutputFile::fail(int error) const {
    throw InputError(fmt::format("{}: cannot be written: {}: give a path where you may write and that has room", path_,
                                 std::generic_category().message(error)));
}

}  // namespace rehearse
