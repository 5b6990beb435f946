// SPDX-License-Identifier: Apache-2.0
// Under which conditions a job runs: noise, slow nodes, degraded links, placement, and where samples come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/file_system.hpp"
#include "core/machine.hpp"
#include "core/network.hpp"
#include "core/schedule.hpp"
#include "core/units.hpp"
#include "sim/host/loader.hpp"
#include "sim/host/staging.hpp"
#include "sim/network/placement.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

/// Jitter of each device in each step.
struct Jitter {
    double sigma = 0;       // relative standard deviation
    bool measured = false;  // instead: as the device's kernels differed when they were calibrated
    int samples = 20;       // steps that are drawn
};

/// How samples are read from a shared tier whose servers of data and of names are known.
struct Reading {
    FileSystem system;
    ReadPattern pattern;  // `sample` is not looked at: Conditions::sample says it
};

/// Nodes that keep samples in memory and send them (sim::DataServers).
struct DataServers {
    std::int64_t count = 1;
    Bytes cache;  // of each
};

struct CheckpointPlan {
    std::string tier;
    std::int64_t every = 1;  // steps
};

/// Learners of a device that are not equally fast; one pace each (sim/host/learners.hpp).
struct LearnerPaces {
    std::vector<double> paces;
    bool first_idle = false;
};

/// What a job meets on its machine, beside network, plan and devices.
/// Large: one member a condition, each with a default that means "not asked for".
struct Conditions {
    Jitter jitter{};
    std::uint64_t seed = 1;  // of jitter and of random placement
    std::vector<sim::SlowNode> slow{};
    std::vector<sim::Degraded> degraded{};
    double quorum = 1;        // a step waits for that share of the devices; or
    std::int64_t backup = 0;  // for all but so many (Chen et al. 2016)
    sim::Placement placement = sim::Placement::contiguous;
    std::int64_t devices_per_node = 0;    // that the job gets; 0: all
    std::string input{}, stage{};         // tiers that samples are read from, and copied from before; empty: none
    std::optional<Bytes> sample{};        // as stored; else the network's input as numbers
    std::optional<Reading> reading{};     // absent: at the tier's own rates
    std::optional<std::int64_t> keep{};   // samples that a node keeps when they are staged
    std::optional<sim::Loader> loader{};  // inside the training process; else samples come a step ahead
    std::optional<DataServers> data_servers{};
    std::optional<CheckpointPlan> checkpoint{};
    LearnerPaces learners{};
};
/// InputError for values that cannot be, whatever the job.
void check(const Conditions& conditions);

/// The machine when a job gets so many devices of each node: the others, and their links, are left out. InputError
/// where a node has not so many.
Machine with_devices_per_node(Machine machine, std::int64_t each);

/// Returns the bytes of a sample as it is stored.
Bytes sample_of(const Conditions& conditions, const Network& network);

/// Data servers as the simulator knows them. InputError where the number of samples is not known.
sim::DataServers data_servers(const Conditions& conditions, const Network& network,
                              std::optional<std::int64_t> dataset);

/// The simulation on the nodes that were asked for, with slow ones, degraded links and learners, without jitter.
sim::Options conditioned(sim::Options options, const Conditions& conditions, const Machine& machine,
                         const Schedule& schedule, std::int64_t devices);

/// The machine whose tier gives each node, and all of them, what such reading allows; never more than it gave before.
Machine with_reading(Machine machine, const Conditions& conditions, const Schedule& schedule);

/// Adds Loads of the samples where they are read from a tier or the loader is inline; the machine then gets its tiers.
void add_input(Schedule& schedule, const Conditions& conditions, Machine& machine);

}  // namespace rehearse::predict
