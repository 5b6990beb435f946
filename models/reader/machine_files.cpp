// SPDX-License-Identifier: Apache-2.0
// Machines by name or by path.
#include "models/reader/machine_files.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/machine_file.hpp"
#include "models/machine_names.hpp"
#include "models/models.hpp"
#include "models/reader/machine_charge.hpp"
#include "models/reader/machine_extends.hpp"
#include "models/reader/machine_parse.hpp"
#include "models/reader/machine_transport.hpp"
#include "models/this_host.hpp"

namespace rehearse::models {
namespace {

Machine shipped(const MachineFile& file, std::string_view transport = "") {
    return parse_machine_with(file.text, fmt::format("models/machines/{}.toml", file.name), transport);
}

}  // namespace

std::string_view device_catalog() {
    const auto files = device_files();
    require(files.size() == 1, "the catalog of devices is built in");
    return files.front().text;
}

std::string_view software_catalog() {
    const auto files = software_files();
    require(files.size() == 1, "the catalog of software is built in");
    return files.front().text;
}

std::optional<std::string_view> shipped_machine(std::string_view name) {
    for (const MachineFile& file : machine_files())
        if (file.name == name) return file.text;
    return std::nullopt;
}

std::vector<std::string> machine_names() {
    std::vector<std::string> names;
    for (const MachineFile& file : machine_files()) names.emplace_back(file.name);
    names.emplace_back(this_host_name);
    return names;
}

std::vector<MachineName> machines() {
    std::vector<MachineName> names;
    for (const MachineFile& file : machine_files()) names.push_back({std::string(file.name), shipped(file).summary});
    names.push_back({std::string(this_host_name), "the host you are on, as `rehearse calibrate --quick` measured it"});
    return names;
}

Machine load_machine(const std::string& name_or_file) {
    if (name_or_file == this_host_name) return load_this_host();
    const std::size_t at = name_or_file.rfind('@');
    const std::string wanted = name_or_file.substr(0, at);
    const std::string transport = at == std::string::npos ? "" : name_or_file.substr(at + 1);
    std::vector<std::string_view> names{this_host_name};
    for (const MachineFile& file : machine_files()) {
        if (file.name == wanted) return shipped(file, transport);
        names.push_back(file.name);
    }
    if (wanted.ends_with(".toml")) return parse_machine_with(read_file(wanted), wanted, transport);
    if (name_or_file.ends_with(".toml") || name_or_file.find('/') != std::string::npos)
        return parse_machine(read_file(name_or_file), name_or_file);
    throw InputError(fmt::format("unknown machine '{}'{}; choose one of {}, or give the path of a .toml file", wanted,
                                 did_you_mean(wanted, names), join(names)));
}

OtherTables other_tables(const std::string& name_or_file) {
    const Machine machine = load_machine(name_or_file);  // says all that is wrong with it
    const bool is_tree = std::holds_alternative<FatTree>(machine.fabric.topology);
    if (name_or_file == this_host_name) return {};
    const auto tables_of = [&](std::string_view text, const std::string& origin) {
        const Extended file{text, origin};
        Reader top = file.reader();
        return OtherTables{parse_transports(top), parse_charge(top), is_tree ? parse_taper_source(top) : ""};
    };
    // A path may have an '@' of its own, a transport follows the last one.
    const std::size_t at = name_or_file.rfind('@');
    for (const std::string& wanted : {name_or_file, name_or_file.substr(0, at)}) {
        const auto text = shipped_machine(wanted);
        if (!text && !wanted.ends_with(".toml")) continue;
        OtherTables others = text ? tables_of(*text, wanted) : tables_of(read_file(wanted), wanted);
        if (wanted != name_or_file)
            std::erase_if(others.transports,
                          [&](const Transport& each) { return each.name == name_or_file.substr(at + 1); });
        return others;
    }
    return {};
}

std::optional<Charge> load_charge(const std::string& name_or_file) { return other_tables(name_or_file).charge; }

}  // namespace rehearse::models
