// SPDX-License-Identifier: Apache-2.0
// All-reduces that the switches of a node sum (NVLS), measured: the rate and the latency of these switches.
#pragma once

#include <string>
#include <vector>

#include "calibrate/message_places.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

/// Says whether `machine` leaves the all-reduce of `row`, of one node, to its switches: their latency is in what `time`
/// says of it, and no message between devices.
bool summed_by_switches(const Machine& machine, const CollectiveRow& row, const CollectiveTime& time);

/// Returns `machine` with the rate and the latency of its switches such that `time` gives back `rows`, of which
/// summed_by_switches says so. Of one size the latency stays. InputError "where: ..." where times do not grow with
/// sizes, or the rate is more than the links of a device carry.
Machine with_switch_sums(Machine machine, const std::vector<CollectiveRow>& rows, const CollectiveTime& time,
                         const std::string& where);

}  // namespace rehearse::calibrate
