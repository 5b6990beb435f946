// SPDX-License-Identifier: Apache-2.0
// The machine files that are built into the binary.
#pragma once

#include <span>
#include <string_view>

namespace rehearse::models {

struct MachineFile {
    std::string_view name, text;
};
/// Defined in a source that embed_files.cmake writes.
std::span<const MachineFile> machine_files();
std::span<const MachineFile> device_files();
/// models/devices.toml: devices that several machines have.
std::string_view device_catalog();

}  // namespace rehearse::models
