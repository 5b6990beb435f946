// SPDX-License-Identifier: Apache-2.0
// Machines by name or by path.
#include "models/machine_files.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "models/this_host.hpp"

namespace rehearse::models {
namespace {

Machine shipped(const MachineFile& file) {
    return parse_machine(file.text, fmt::format("models/machines/{}.toml", file.name));
}

}  // namespace

std::vector<MachineName> machines() {
    std::vector<MachineName> names;
    for (const MachineFile& file : machine_files()) names.push_back({std::string(file.name), shipped(file).summary});
    names.push_back({std::string(this_host_name), "the host you are on, as `rehearse calibrate --quick` measured it"});
    return names;
}

Machine load_machine(const std::string& name_or_file) {
    if (name_or_file == this_host_name) return load_this_host();
    std::vector<std::string_view> names{this_host_name};
    for (const MachineFile& file : machine_files()) {
        if (file.name == name_or_file) return shipped(file);
        names.push_back(file.name);
    }
    if (name_or_file.ends_with(".toml") || name_or_file.find('/') != std::string::npos)
        return parse_machine(read_file(name_or_file), name_or_file);
    throw InputError(fmt::format("unknown machine '{}'{}; choose one of {}, or give the path of a .toml file",
                                 name_or_file, did_you_mean(name_or_file, names), join(names)));
}

}  // namespace rehearse::models
