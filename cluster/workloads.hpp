// SPDX-License-Identifier: Apache-2.0
// Jobs that are made up, from one line each: arrivals at random, and searches that are many jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/jobs.hpp"

namespace rehearse::cluster {

/// "poisson:jobs=60:hourly=20:minutes=30:model=resnet50+vgg16:batch=64-1024:most=8". Words of workload_words().
struct Workload {
    std::string text{};
    std::string_view kind{};  // of workload_words()
    std::vector<std::string> models{};
    std::int64_t jobs = 40;    // poisson: how many; search: trials; population: members
    double hourly = 20;        // poisson: jobs that arrive an hour, in the mean
    double minutes = 30;       // what a job takes one device at its best, in the mean; of a search: the first rung
    double eta = 3;            // search: of so many trials one goes on
    std::int64_t rounds = 10;  // population: generations
    bool together = false;     // population: a generation waits for all members of the last one
    BatchRange batches{0, 0};  // least 0: what a device holds, to that of `most` devices
    std::int64_t most = 8;     // devices of a job
};

/// InputError names the unknown word and what would be right.
Workload parse_workload(std::string_view text);

struct WorkloadWord {
    std::string_view name, values, summary;
};
std::span<const WorkloadWord> workload_kinds();
std::span<const WorkloadWord> workload_options();

/// The same jobs for the same seed, on every machine.
/// - poisson: jobs of the models in turn of a die, exponential times between them, lengths evenly from half to one and
/// a
///   half times the mean; each asks for a batch drawn (evenly in its logarithm) from the range, and for as few devices,
///   a power of two, as hold it.
/// - search: random search with successive halving (Jamieson and Talwalkar 2016): rung r has jobs / eta^r trials, of
///   which the best 1 / eta go on to eta times as many samples as before, when the whole rung is done. eta = 1: none
///   stops, all take the length of the first rung.
/// - population: population-based training (Jaderberg et al. 2017): each member trains for `rounds` generations; before
///   each but the first it goes on from its own or a better member's weights, which the restart pays for.
std::vector<Job> make_jobs(const Workload& workload, const SpeedTable& speeds, std::int64_t devices,
                           std::uint64_t seed);

}  // namespace rehearse::cluster
