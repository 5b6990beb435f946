// SPDX-License-Identifier: Apache-2.0
#include "bench/caches.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/text.hpp"

namespace rehearse::bench {

namespace {

namespace fs = std::filesystem;

std::string first_word(const fs::path& file) {
    std::ifstream in(file);
    std::string word;
    in >> word;
    return word;
}

// "0-3,8": how many numbers it lists.
int count_of(const std::string& list) {
    int count = 0;
    for (const std::string_view part : split(list, ',')) {
        const auto ends = split(part, '-');
        count += static_cast<int>(parse_int(ends.back(), "CPU") - parse_int(ends.front(), "CPU")) + 1;
    }
    return count;
}

// "48K", as sysfs writes it.
Bytes size_of(const std::string& text) {
    std::istringstream in(text);
    double value = 0;
    char unit = 0;
    in >> value >> unit;
    return Bytes{value * (unit == 'K' ? 1024.0 : unit == 'M' ? 1048576.0 : 1.0)};
}

// The number behind a name at the beginning of a line; 0 when it is not there.
double value_of(const fs::path& file, const std::string& name) {
    std::ifstream in(file);
    for (std::string word, rest; in >> word; std::getline(in, rest)) {
        double value = 0;
        if (word == name && in >> value) return value;
    }
    return 0;
}

std::vector<Cache> assumed() {
    return {{1, Bytes{32.0 * 1024}}, {2, Bytes{1048576.0}}, {3, Bytes{32.0 * 1048576}, 1024, 1}};
}

}  // namespace

std::vector<Cache> data_caches(const std::string& root) {
    std::map<int, Cache> by_level;
    std::set<std::string> seen;  // level and who shares it: one cache
    std::error_code error;
    for (const auto& cpu : fs::directory_iterator(root, error)) {
        for (const auto& index : fs::directory_iterator(cpu.path() / "cache", error)) {
            const std::string type = first_word(index.path() / "type");
            const std::string level = first_word(index.path() / "level");
            const std::string shared = first_word(index.path() / "shared_cpu_list");
            if ((type != "Data" && type != "Unified") || level.empty() || shared.empty()) continue;
            if (!seen.insert(level + ':' + shared).second) continue;
            const int number = static_cast<int>(parse_int(level, "cache level"));
            const auto [entry, fresh] = by_level.try_emplace(number);
            Cache& cache = entry->second;
            const int instances = fresh ? 1 : cache.instances + 1;
            cache = {number, size_of(first_word(index.path() / "size")), count_of(shared), instances};
        }
    }
    std::vector<Cache> caches;
    for (const auto& [level, cache] : by_level) caches.push_back(cache);
    return caches.empty() ? assumed() : caches;
}

Bytes available_memory() {
    double available = 1024 * value_of("/proc/meminfo", "MemAvailable:");
    const fs::path group = "/sys/fs/cgroup";
    std::ifstream limit(group / "memory.max");
    std::ifstream used(group / "memory.current");
    double most = 0;
    double now = 0;
    if (limit >> most && used >> now) {  // "max" is no number
        const double reclaimable = value_of(group / "memory.stat", "inactive_file");
        available = std::min(available, most - now + reclaimable);
    }
    return Bytes{std::max(0.0, available)};
}

}  // namespace rehearse::bench
