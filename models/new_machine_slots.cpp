// SPDX-License-Identifier: Apache-2.0
// What joins a card to its processor, where nobody has told it: the slot of its generation.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/new_machine.hpp"

namespace rehearse::models {

namespace {

struct Slot {
    std::string_view device;  // what the names of models/devices.toml begin with
    int generation;           // of PCIe; of processors that of their network cards' slots
};
// Maker's data sheets, each x16. The K80's is that of a board of two.
constexpr std::array slots{
    Slot{"k80", 3},     Slot{"titanx-", 3}, Slot{"gtx1080", 3}, Slot{"p4", 3},      Slot{"p100", 3},
    Slot{"v100", 3},    Slot{"t4", 3},      Slot{"rtx5000", 3}, Slot{"a100", 4},    Slot{"l4", 4},
    Slot{"rtx3090", 4}, Slot{"rtx4090", 4}, Slot{"mi100", 4},   Slot{"mi210", 4},   Slot{"mi250x", 4},
    Slot{"h100", 5},    Slot{"h200", 5},    Slot{"gh200", 5},   Slot{"b200", 5},    Slot{"gb200", 5},
    Slot{"mi300", 5},   Slot{"mi355", 5},   Slot{"max-", 5},    Slot{"e5-", 3},     Slot{"haswell", 3},
    Slot{"knl", 3},     Slot{"xeon-81", 3}, Slot{"xeon-82", 3}, Slot{"xeon-84", 5}, Slot{"epyc-7", 4},
    Slot{"epyc-9", 5},  Slot{"grace", 5},   Slot{"a64fx", 3},
};

// 16 lanes of 8 GT/s, of which 128 of 130 bits are data, and twice as much in each generation after the third.
constexpr double x16_of_third = 15.75e9;

int generation_of(std::string_view device) {
    const auto* const found =
        std::ranges::find_if(slots, [&](const Slot& each) { return device.starts_with(each.device); });
    return found == slots.end() ? 5 : found->generation;
}

}  // namespace

Answer<Bandwidth> assumed_slot(std::string_view device) {
    const int generation = generation_of(device);
    return {Bandwidth{x16_of_third * static_cast<double>(1 << (generation - 3))},
            fmt::format("assumed: PCIe {} x16, as {} has; put what you know in its place", generation, device)};
}

Answer<Bandwidth> assumed_host_link(std::string_view device) {
    if (device == "gh200")
        return {Bandwidth{450e9}, "assumed: NVLink-C2C to the Grace beside it; put what you know in its place"};
    return assumed_slot(device);
}

}  // namespace rehearse::models
