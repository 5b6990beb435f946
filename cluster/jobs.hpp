// SPDX-License-Identifier: Apache-2.0
// Jobs that want a share of a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/speeds.hpp"

namespace rehearse::cluster {

struct Job {
    std::string name{};
    std::string model{};  // whose speeds these are
    Seconds arrival{};
    double samples = 0;        // to be trained on in all
    std::int64_t devices = 1;  // that its user asks for
    std::int64_t batch = 1;    // that its user asks for, of all devices together
    BatchRange batches{};      // with which it gets as good, as its user knows
    std::int64_t most_devices = 1;
    std::vector<int> after{};  // jobs that have to be complete before it can start
};

/// CSV with the columns name, model, arrival_s, samples, devices, batch, and, if it likes, min_batch, max_batch,
/// max_devices (else what is asked for) and after (names with '+' between them). InputError with file and line.
std::vector<Job> read_jobs(std::string_view text, const std::string& origin);

/// InputError unless every job's model has speeds, and it can run as its user asks and fits a cluster of `devices`.
void check(const std::vector<Job>& jobs, const SpeedTable& speeds, std::int64_t devices);

}  // namespace rehearse::cluster
