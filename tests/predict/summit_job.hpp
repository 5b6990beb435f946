// SPDX-License-Identifier: Apache-2.0
// The job that tests begin with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/models.hpp"
#include "predict/job.hpp"
#include "schedule/plan.hpp"

namespace rehearse::predict {

/// Of a network by its name, data-parallel on these numbers of Summit's GPUs.
inline Job summit_job(const std::string& network, std::vector<std::int64_t> devices) {
    return {.network = models::load_network(network),
            .machine = models::load_machine("summit"),
            .plan = schedule::parse_plan("data"),
            .devices = std::move(devices)};
}

}  // namespace rehearse::predict
