// SPDX-License-Identifier: Apache-2.0
// The tables of calibrate/deepbench/, built into the binary.
#pragma once

#include <span>
#include <string_view>

namespace rehearse::models {

struct KernelFile {
    std::string_view name, text;
};
/// Defined in a source that RehearseEmbed.cmake writes.
std::span<const KernelFile> kernel_files();

}  // namespace rehearse::models
