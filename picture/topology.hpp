// SPDX-License-Identifier: Apache-2.0
// A machine drawn: the inside of a node of each kind, and the fabric between nodes; and who sends how much to whom.
#pragma once

#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "picture/link_load.hpp"

namespace rehearse::picture {

/// Node kinds side by side, the fabric below. Links are the wider the more they carry; with `use`, coloured by it:
/// inside a node those of node `node` (of its kind that node, of others the nearest); by its own load where all of its
/// kind are listed, else by the mean of the kind.
Picture topology_picture(const Machine& machine, const LinkShares& use, double width, Theme theme,
                         std::int64_t node = 0);

/// "summit" of a prediction's title, as "resnet50 on summit, data=48, predicted"; empty where it names none.
std::string machine_of(const std::string& title);

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
