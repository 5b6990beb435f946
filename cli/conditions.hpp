// SPDX-License-Identifier: Apache-2.0
// Under which conditions predict looks at a run: noise, slow nodes, degraded links, placement, and where samples
// come from.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "sim/loader.hpp"
#include "sim/placement.hpp"
#include "sim/simulate.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace rehearse::cli {

struct Conditions {
    std::string noise;  // a share, or "measured"; empty: none
    int samples = 20;
    std::uint64_t seed = 1;
    std::vector<std::string> slow, degrade;  // "NODE=TIMES", "LINK=SHARE"
    std::string quorum;                      // a share
    std::int64_t backup = 0;
    sim::Placement placement = sim::Placement::contiguous;
    std::string input, sample, stage;
    std::string loader;  // "ahead", "inline", "inline:stack=RATE:copy=RATE"; empty: as ahead
    std::optional<std::int64_t> keep;
    std::optional<std::int64_t> data_servers;
    std::string cache;  // of each of them
    std::string checkpoint;
    std::optional<std::int64_t> checkpoint_every;  // steps
};
void add_conditions(CLI::App& app, Conditions& conditions);
/// InputError for what is wrong with the options by themselves.
void check(const Conditions& conditions);

/// The simulation on the nodes that were asked for, with slow ones and degraded links, without noise.
sim::Options conditioned(sim::Options options, const Conditions& conditions, const Machine& machine,
                         std::int64_t devices);
/// With --data-servers: the machine with the storage tier that they are, and conditions under which it is read.
struct Served {
    Machine machine;
    Conditions conditions;
};
std::optional<Served> with_data_servers(const Machine& machine, const Conditions& conditions, const Network& network,
                                        std::int64_t devices, std::optional<std::int64_t> dataset);
/// What a loader inside the training process does; nothing when samples come a step ahead. InputError for a text that
/// says neither.
std::optional<sim::Loader> inline_loader(const std::string& text);
/// Loads of the samples, where --input is given or the loader is inline; the machine then gets its tiers.
void add_input(Schedule& schedule, const Conditions& conditions, Machine& machine);

/// The step under noise: "noisy_step_s", its 5 % and 95 % quantiles, "noisy_samples_per_s".
void add_noise(nlohmann::ordered_json& point, const Schedule& schedule, const Machine& machine,
               const sim::Options& options, const Conditions& conditions);
/// "checkpoint_s", and "checkpoint_share" of the training that is spent on checkpoints.
void add_checkpoint(nlohmann::ordered_json& point, const Schedule& schedule, const Machine& machine,
                    const Conditions& conditions);
/// "io_bound_devices", "cached_share" of samples in data servers' memory, and of a data set of so many samples
/// "staging_s".
void add_storage(nlohmann::ordered_json& point, const Schedule& schedule, const Machine& machine,
                 const Conditions& conditions, std::optional<std::int64_t> dataset);

}  // namespace rehearse::cli
