// SPDX-License-Identifier: Apache-2.0
// calibrate --trace: prices of a network's layers out of a profile of its training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/message_fit.hpp"
#include "calibrate/recorded_timeline.hpp"
#include "cli/report.hpp"
#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::cli {

struct TraceCalibration {
    std::vector<std::string> traces, models;
    std::vector<std::int64_t> batches;
    std::string fuse, machine, machine_out;
    Precision precision = Precision::fp32;
    Optimizer optimizer = Optimizer::sgd;
    std::optional<calibrate::Between> between{};  // of groups whose ranks no profile lists
};

/// Writes `machine` with what the traces say of its device and its messages. InputError for traces that are broken, or
/// of another network or batch.
int calibrate_trace(const TraceCalibration& asked, const Common& common);

}  // namespace rehearse::cli
