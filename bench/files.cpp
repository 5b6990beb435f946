// SPDX-License-Identifier: Apache-2.0
#include "bench/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <system_error>

#include "calibrate/fit.hpp"
#include "core/error.hpp"

namespace rehearse::bench {

namespace {

// An open file, closed at the end of its life. BackendError with the system's reason.
class Descriptor {
public:
    Descriptor(const std::filesystem::path& path, int flags) : id_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
        if (id_ < 0) throw failure(path);
    }
    ~Descriptor() { ::close(id_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int id() const { return id_; }
    static BackendError failure(const std::filesystem::path& path) {
        return BackendError(fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
    }

private:
    int id_;
};

void read_at(const Descriptor& file, std::vector<char>& to, std::int64_t offset, const std::filesystem::path& path) {
    for (std::size_t done = 0; done < to.size();) {
        const ssize_t got = ::pread(file.id(), to.data() + done, to.size() - done,
                                    static_cast<off_t>(offset) + static_cast<off_t>(done));
        if (got <= 0) throw Descriptor::failure(path);
        done += static_cast<std::size_t>(got);
    }
}

double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
    std::string name = (parent / "rehearse-files-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        throw InputError(fmt::format("{}: no folder can be made in it: {}", parent.string(),
                                     std::generic_category().message(errno)));
    }
    path_ = name;
}
ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

SampleFiles write_samples(const std::filesystem::path& folder, const std::string& name, std::int64_t samples,
                          std::int64_t sample, std::int64_t a_file, std::int64_t between) {
    SampleFiles files{.paths = {}, .sample = sample, .a_file = a_file, .between = between};
    std::mt19937_64 random{static_cast<std::uint64_t>(sample)};
    std::vector<char> bytes(static_cast<std::size_t>(sample + between));
    for (std::int64_t first = 0; first < samples; first += a_file) {
        files.paths.push_back(folder / fmt::format("{}-{}", name, first));
        const Descriptor file{files.paths.back(), O_WRONLY | O_CREAT | O_EXCL};
        for (std::int64_t i = first; i < std::min(first + a_file, samples); ++i) {
            for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8)
                *reinterpret_cast<std::uint64_t*>(bytes.data() + at) = random();
            for (std::size_t done = 0; done < bytes.size();) {
                const ssize_t put = ::write(file.id(), bytes.data() + done, bytes.size() - done);
                if (put <= 0) throw Descriptor::failure(files.paths.back());
                done += static_cast<std::size_t>(put);
            }
        }
        if (::fsync(file.id()) != 0) throw Descriptor::failure(files.paths.back());
    }
    return files;
}

void forget(const std::filesystem::path& path) {
    const Descriptor file{path, O_RDONLY};
    if (const int error = ::posix_fadvise(file.id(), 0, 0, POSIX_FADV_DONTNEED); error != 0) {
        throw BackendError(fmt::format("{}: {}", path.string(), std::generic_category().message(error)));
    }
}

Seconds read_cold(const SampleFiles& files, std::uint64_t seed) {
    std::vector<std::int64_t> order(files.paths.size() * static_cast<std::size_t>(files.a_file));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::mt19937_64{seed});
    std::vector<char> to(static_cast<std::size_t>(files.sample));
    std::vector<std::unique_ptr<Descriptor>> open(files.paths.size());
    const auto opened = [&](std::size_t f) {
        auto file = std::make_unique<Descriptor>(files.paths[f], O_RDONLY);
        ::posix_fadvise(file->id(), 0, 0, POSIX_FADV_RANDOM);  // no reading ahead of what is asked for
        return file;
    };
    for (std::size_t f = 0; f < open.size() && files.a_file > 1; ++f) open[f] = opened(f);
    const auto start = std::chrono::steady_clock::now();
    for (const std::int64_t i : order) {
        const auto f = static_cast<std::size_t>(i / files.a_file);
        if (files.a_file == 1) open[f] = opened(f);
        read_at(*open[f], to, i % files.a_file * (files.sample + files.between) + files.between, files.paths[f]);
        if (files.a_file == 1) open[f].reset();
    }
    return Seconds{since(start) / static_cast<double>(order.size())};
}

std::vector<Seconds> cold_medians(const std::vector<ColdCase>& cases, int rounds) {
    std::vector<std::vector<double>> seconds(cases.size());
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t c = 0; c < cases.size(); ++c) {
            for (const auto& path : cases[c].paths) forget(path);
            seconds[c].push_back(cases[c].read(round).value);
        }
    }
    std::vector<Seconds> medians;
    for (std::vector<double>& each : seconds) medians.emplace_back(calibrate::median(std::move(each)));
    return medians;
}

namespace {

constexpr std::int64_t kib = 1024, mib = kib * kib;

}  // namespace

std::vector<ColdCase> drive_cases(const std::filesystem::path& folder) {
    std::vector<ColdCase> cases;
    for (const SampleFiles& files :
         {write_samples(folder, "small", 256, 16 * kib, 1), write_samples(folder, "pieces", 512, 64 * kib, 512),
          write_samples(folder, "stretches", 16, 4 * mib, 16)}) {
        cases.push_back(
            {files.paths, [files](int round) { return read_cold(files, static_cast<std::uint64_t>(round)); }});
    }
    return cases;
}

FileSystem drive_of(const std::vector<Seconds>& medians) {
    const Seconds files = medians.at(0), small = medians.at(1), large = medians.at(2);
    if (large <= small) {
        throw BackendError(fmt::format("reads of 4 MiB took {}, of 64 KiB {}: the drive is too busy to be measured",
                                       to_string(large), to_string(small)));
    }
    const std::string source = "measured here, cold page cache";
    FileSystem drive;
    drive.name = "drive";
    drive.summary = "the drive below this folder";
    drive.stream = {Bytes{static_cast<double>(4 * mib - 64 * kib)} / (large - small), source};
    const auto bytes_of = [&](std::int64_t size) { return Bytes{static_cast<double>(size)} / drive.stream.value; };
    drive.request = {std::max(Seconds{}, small - bytes_of(64 * kib)), source};
    drive.operation = {std::max(Seconds{}, files - drive.request.value - bytes_of(16 * kib)), source};
    drive.operations = {1, "opened, read and closed"};
    drive.read = drive.stream;
    return drive;
}

}  // namespace rehearse::bench
