// SPDX-License-Identifier: Apache-2.0
// The machine files that are built into the binary.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/machine.hpp"

namespace rehearse::models {

struct MachineFile {
    std::string_view name, text;
};
/// Defined in a source that RehearseEmbed.cmake writes.
std::span<const MachineFile> machine_files();
std::span<const MachineFile> device_files();
std::span<const MachineFile> software_files();
std::span<const MachineFile> framework_files();
std::span<const MachineFile> library_files();
std::span<const MachineFile> mpi_files();
std::span<const MachineFile> file_system_files();
/// models/devices.toml: devices that several machines have.
std::string_view device_catalog();
/// One of them; nothing where it has no such device.
std::optional<DeviceClass> catalogued_device(std::string_view name);
/// models/software.toml: how software drives devices.
std::string_view software_catalog();
/// The text of a machine that ships with Rehearse.
std::optional<std::string_view> shipped_machine(std::string_view name);

}  // namespace rehearse::models
