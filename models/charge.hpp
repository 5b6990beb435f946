// SPDX-License-Identifier: Apache-2.0
// What the center of a machine charges for it, and how large and long its jobs may be: [charge] of a machine file. No
// prediction depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/units.hpp"

namespace rehearse::models {

/// A queue (partition, class, bin) of a center's batch system.
struct Queue {
    std::string name;
    std::int64_t least = 1, most = 1;  // nodes of a job
    Seconds wall;                      // of a job at most
    std::string source;
};

struct Charge {
    std::string unit;        // what is granted: "node-hour", "SU", "GPU-hour"
    Sourced<double> factor;  // units that a node costs in an hour; 0: it costs none
    std::vector<Queue> queues;
};

/// [charge] of a machine by its name or its file, as load_machine takes them; nothing where the file has none. Throws
/// InputError as load_machine does.
std::optional<Charge> load_charge(const std::string& name_or_file);

/// The queue that takes a job of so many nodes for the longest, or nothing.
std::optional<Queue> longest_queue(const Charge& charge, std::int64_t nodes);

}  // namespace rehearse::models
