// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/held_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.hpp"

namespace rehearse::run {

HeldFolder::HeldFolder(const std::filesystem::path& folder) {
    if (std::filesystem::exists(folder) && !std::filesystem::is_directory(folder)) {
        throw InputError(fmt::format("--checkpoint {}: is a file, not a folder", folder.string()));
    }
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (std::filesystem::is_directory(folder))
        lock_ = ::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0 || ::access(folder.c_str(), W_OK) != 0) {
        if (lock_ >= 0) ::close(lock_);
        throw InputError(fmt::format("--checkpoint {}: no folder that can be written to", folder.string()));
    }
    if (::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(lock_);
    throw InputError(fmt::format("--checkpoint {}: another run saves there, and is not over yet", folder.string()));
}

HeldFolder::~HeldFolder() { ::close(lock_); }

}  // namespace rehearse::run
