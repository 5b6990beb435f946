// SPDX-License-Identifier: Apache-2.0
// What needs no database: winners as choices, and what they are true of.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "kernels/tuned/store.hpp"

namespace rehearse::kernels::tuned {
namespace {

const Backend* backend_of(const Winner& winner) {
    const auto found = std::ranges::find_if(backends(), [&](const Backend* backend) {
        return backend->name() == winner.backend && backend->algorithm() == winner.algorithm;
    });
    return found == backends().end() ? nullptr : *found;
}

std::string cpu_model() {
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);) {
        const std::size_t value = line.find(": ");
        if (line.starts_with("model name") && value != std::string::npos) return line.substr(value + 2);
    }
    return "unknown CPU";
}

// "onednn 2.6.3 isa 0x..., cpu 1f2e3d AVX3": the first backend of each library speaks for it.
std::string versions() {
    std::string text;
    std::string_view last;
    for (const Backend* backend : backends()) {
        const std::string version = backend->version();
        if (version.empty() || backend->name() == last) continue;
        last = backend->name();
        text += fmt::format("; {} {}", last, version);
    }
    return text;
}

}  // namespace

Choices choices(const std::vector<Winner>& winners, Bytes limit) {
    Choices found;
    for (const Winner& winner : winners) {
        const Backend* const backend = backend_of(winner);
        const bool tells = winner.scratch <= limit && limit <= winner.scratch_limit;
        if (backend != nullptr && tells) found[winner.problem] = {backend, winner.threads};
    }
    return found;
}

std::string fingerprint(int threads) {
    // Processors that are online, not those that this process may use: mpirun ties each rank to its own.
    return fmt::format("{}; {} processors; L1 {}, L2 {}, L3 {} bytes{}; {} thread{}", cpu_model(),
                       sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE),
                       sysconf(_SC_LEVEL3_CACHE_SIZE), versions(), threads, threads == 1 ? "" : "s");
}

}  // namespace rehearse::kernels::tuned
