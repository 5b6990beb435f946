// SPDX-License-Identifier: Apache-2.0
// What a machine file says that no Machine holds: the transports that were not asked for, what its center charges, and
// who says the tapers of its tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "models/charge.hpp"

namespace rehearse::models {

/// Another network or software than the machine's usual one. What has no source or is absent stays as it is.
struct Transport {
    std::string name;
    Sourced<Bandwidth> link;  // NIC to its switch, each direction
    Sourced<Seconds> latency, hop_latency;
    std::optional<Messaging> inside, across;
};

struct OtherTables {
    std::vector<Transport> transports;
    std::optional<Charge> charge;
    std::string taper_source{};  // of the tapers of a fat tree; empty: the file names none
};

/// Returns these tables of a machine by its name or its file, as load_machine takes them, without the transport that
/// the name asks for: load_machine's Machine has that. Empty for this-host. InputError as load_machine.
OtherTables other_tables(const std::string& name_or_file);

/// The TOML text of `machine` with these tables: all that a machine file says.
std::string to_toml(const Machine& machine, const OtherTables& others);

}  // namespace rehearse::models
