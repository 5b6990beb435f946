// SPDX-License-Identifier: Apache-2.0
// Published figures of many jobs on one machine.
#pragma once

#include <map>
#include <string>

#include "cluster/speeds.hpp"
#include "validate/replay_rows.hpp"

namespace rehearse::validate {

/// Keeps the speeds that it was asked for.
class ClusterRows {
public:
    /// Elastic batches against fixed ones, both with devices that follow the load: how many times as many jobs are
    /// complete where there is no queue (metric jobs_completed...), or how many times shorter they take
    /// (completion...), at the arrival rate that says most. The band is the spread over three draws of jobs, and
    /// `error`. InputError where a setting is missing.
    Answer answer(const PublishedRow& row, const ReplaySettings& settings, double error);

private:
    const cluster::SpeedTable& speeds(const std::string& machine, const std::vector<std::string>& networks,
                                      std::int64_t devices);
    std::map<std::string, cluster::SpeedTable> speeds_;  // by machine and networks
};

}  // namespace rehearse::validate
