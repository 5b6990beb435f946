// SPDX-License-Identifier: Apache-2.0
#include "models/file_systems.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/reader/machine_files.hpp"
#include "models/reader/machine_reader.hpp"
#include "models/reader/toml.hpp"

namespace rehearse::models {

FileSystem read_file_system(std::string_view text, const std::string& origin) {
    const toml::table table = parse_toml(text, origin);
    Reader reader(table, origin, "file system");
    FileSystem system;
    system.name = reader.text("name");
    reader.set_where(fmt::format("file system '{}'", system.name));
    system.summary = reader.text("summary");
    for (Reader& mount : reader.tables("mount", "mount")) {
        system.mounts.push_back({mount.text("machine"), mount.text("tier")});
        mount.done();
    }
    system.read = reader.figure<Bandwidth>("read");
    system.targets = reader.figure_if_given<double>("targets");
    system.seek = reader.figure_if_given<Seconds>("seek");
    system.metadata = reader.figure_if_given<double>("metadata");
    system.operations = reader.figure_if_given<double>("operations");
    system.operation = reader.figure_if_given<Seconds>("operation");
    system.request = reader.figure_if_given<Seconds>("request");
    system.stream = reader.figure_if_given<Bandwidth>("stream");
    if (!system.seek.source.empty() && system.targets.source.empty())
        reader.fail("seek", "seek is of each of its targets: say how many there are (targets)");
    reader.done();
    return system;
}

const std::vector<FileSystem>& file_systems() {
    static const std::vector<FileSystem> all = [] {
        std::vector<FileSystem> read;
        for (const MachineFile& file : file_system_files())
            read.push_back(read_file_system(file.text, fmt::format("models/file_systems/{}.toml", file.name)));
        return read;
    }();
    return all;
}

FileSystem load_file_system(const std::string& name) {
    if (name.ends_with(".toml")) return read_file_system(read_file(name), name);
    const auto found = std::ranges::find(file_systems(), name, &FileSystem::name);
    if (found != file_systems().end()) return *found;
    std::vector<std::string_view> names;
    for (const FileSystem& system : file_systems()) names.push_back(system.name);
    throw InputError(
        fmt::format("file system '{}': there are {}, and FILE.toml{}", name, join(names), did_you_mean(name, names)));
}

FileSystem mounted_file_system(const Machine& machine, const std::string& tier) {
    std::vector<std::string> tiers;
    const std::string name = machine.name.substr(0, machine.name.find('@'));
    for (const FileSystem& system : file_systems()) {
        for (const FileSystem::Mount& mount : system.mounts) {
            if (mount.machine != name) continue;
            if (mount.tier == tier) return system;
            tiers.push_back(mount.tier);
        }
    }
    const std::vector<std::string_view> known(tiers.begin(), tiers.end());
    throw InputError(
        fmt::format("--reading: of machine '{}' no file system says that it is its tier '{}' ({}): give one by "
                    "--file-system NAME or FILE.toml",
                    machine.name, tier, known.empty() ? "of none of its tiers" : "only of " + join(known)));
}

}  // namespace rehearse::models
