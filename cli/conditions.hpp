// SPDX-License-Identifier: Apache-2.0
// The words for the conditions under which predict looks at a run: noise, slow nodes, degraded links, placement, and
// where samples come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predict/conditions.hpp"

namespace rehearse::cli {

class CommandLine;

/// As written on the command line.
/// Large: one member an option.
struct ConditionOptions {
    std::string noise;  // a share, or "measured"; empty: none
    int samples = 20;
    std::uint64_t seed = 1;
    std::vector<std::string> slow, degrade;  // "NODE=TIMES", "LINK=SHARE"
    std::string quorum;                      // a share
    std::int64_t backup = 0;
    sim::Placement placement = sim::Placement::contiguous;
    std::optional<std::int64_t> devices_per_node;
    std::string input, sample, stage;
    std::string reading, file_system;  // how samples are read, and from what; empty: at the tier's rates
    std::string loader;                // "ahead", "inline", "inline:stack=RATE:copy=RATE"; empty: as ahead
    std::optional<std::int64_t> keep;
    std::optional<std::int64_t> data_servers;
    std::string cache;  // of each of them
    std::string checkpoint;
    std::optional<std::int64_t> checkpoint_every;  // steps
};
void add_conditions(CommandLine& app, ConditionOptions& conditions);

/// What the words mean. InputError for what cannot be, whatever the job.
predict::Conditions conditions_of(const ConditionOptions& options, const Machine& machine);

}  // namespace rehearse::cli
