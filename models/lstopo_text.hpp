// SPDX-License-Identifier: Apache-2.0
// The XML that lstopo writes of a node, of versions 1 and 2 of hwloc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::models::lstopo {

struct Node {
    std::int64_t packages = 0;
    std::vector<std::int64_t> cards, ports;  // of each the package that it is at; 0 where the file puts it at none
    bool by_class = false;  // cards are display controllers of PCI, as no library's devices are in the file
};

/// A card is what CUDA, NVML, RSMI, Level Zero, OpenCL or another library of coprocessors has at one PCI device,
/// however many of them do; OpenCL's view of a processor is none. hwloc's own reader ends the process over objects
/// without the sets that it expects (2.9.0, hwloc_topology_load): InputError with the line where this is no such file.
Node parse(std::string_view text, const std::string& origin);

}  // namespace rehearse::models::lstopo
