// SPDX-License-Identifier: Apache-2.0
// A machine drawn: the inside of a node of each kind, and the fabric between nodes; and who sends how much to whom.
#pragma once

#include <map>
#include <string>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "picture/chart.hpp"

namespace rehearse::picture {

/// A number between 0 and 1 of a link by its name ("gpu0-gpu1"; of a direction either); what is absent is drawn by its
/// bandwidth alone.
using LinkShares = std::map<std::string, double>;

/// Node kinds side by side, the fabric below. Links are the wider the more they carry; with `use`, coloured by it.
Picture topology_picture(const Machine& machine, const LinkShares& use, double width, Theme theme);

/// From white over orange to dark red (on dark ground: to pale yellow): shares, loads, waiting.
Color heat_color(double share, Theme theme);

/// Bytes that each rank sends to each other in one step.
struct Traffic {
    std::int64_t ranks = 0;
    std::vector<double> bytes;  // ranks x ranks, row: from
};
/// InputError beyond `most` ranks.
Traffic traffic_of(const Schedule& schedule, const Machine& machine, std::int64_t most = 256);
Picture traffic_picture(const Traffic& traffic, const Machine& machine, Size size, Theme theme);

}  // namespace rehearse::picture
