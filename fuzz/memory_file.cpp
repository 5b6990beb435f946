// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <filesystem>

#include "fuzz/target.hpp"

namespace rehearse::fuzz {

namespace {

namespace fs = std::filesystem;

void fill(int file, const std::uint8_t* data, std::size_t size) {
    require(file >= 0, "a file for the input");
    require(::write(file, data, size) == static_cast<ssize_t>(size), "all of the input is in it");
}

/// One of this process, removed as it ends well.
const fs::path& own_folder() {
    struct Folder {
        Folder() {
            std::error_code none;
            const fs::path memory = "/dev/shm";
            const fs::path above = fs::is_directory(memory, none) ? memory : fs::temp_directory_path();
            std::string name = above / "rehearse_fuzz_XXXXXX";
            require(::mkdtemp(name.data()) != nullptr, "a folder for the input");
            path = name;
        }
        ~Folder() {
            std::error_code none;
            fs::remove_all(path, none);
        }
        fs::path path;
    };
    static const Folder folder;
    return folder.path;
}

}  // namespace

MemoryFile::MemoryFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    fill(file_, data, size);
}

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", file_); }

NamedFile::NamedFile(const std::uint8_t* data, std::size_t size) : path_(own_folder() / "input") {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    fill(file, data, size);
    ::close(file);
}

NamedFile::~NamedFile() {
    ::unlink(path_.c_str());
    ::unlink((path_ + "-journal").c_str());  // SQLite's
}

}  // namespace rehearse::fuzz
