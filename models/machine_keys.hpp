// SPDX-License-Identifier: Apache-2.0
// What a machine file may say: the tables and keys of docs/reference/machine-files.md, which is written from here. A
// test holds them to what the reader asks for and to what the shipped files say.
#pragma once

#include <span>
#include <string_view>

namespace rehearse::models {

struct MachineKey {
    std::string_view name, value, meaning;  // value: "bandwidth", "name", "list of names", ...
};

struct MachineTable {
    std::string_view name, about;  // "[[device.efficiency]]"
    std::span<const MachineKey> keys;
};

/// In the order in which a file is written.
std::span<const MachineTable> machine_tables();

}  // namespace rehearse::models
