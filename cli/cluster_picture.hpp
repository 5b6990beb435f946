// SPDX-License-Identifier: Apache-2.0
// A cluster's jobs as a picture.
#pragma once

#include <string>
#include <vector>

#include "cluster/simulate.hpp"
#include "picture/gantt.hpp"

namespace rehearse::cli {

/// A colour a model, a bar a job and the devices that it has, pale while it restarts.
picture::Gantt gantt_of(const std::vector<cluster::Job>& jobs, const cluster::Outcome& outcome,
                        const std::string& machine);

}  // namespace rehearse::cli
