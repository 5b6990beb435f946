// SPDX-License-Identifier: Apache-2.0
// What calibrate prints: prices, figures, and how far fits are from samples.
#pragma once

#include <string>
#include <vector>

#include "calibrate/checked_steps.hpp"
#include "calibrate/message_fit.hpp"
#include "calibrate/samples.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/machine.hpp"

namespace rehearse::cli {

struct Calibration {
    const calibrate::Samples& samples;
    const Machine& host;
    const std::vector<calibrate::CheckedStep>& in_situ;
    std::string file;
    bool residuals = false;
};

Report report_of(const Calibration& made, Json configuration);

/// "a message WHERE: up to 8 KiB 3 us + bytes / 4 GB/s; ..., ± 2 %", ended.
std::string messaging_line(std::string_view where, const Messaging& messaging);

/// Messages as measured and as the machine's pieces say, in the format that the path's suffix names.
std::string residual_picture(const calibrate::Samples& samples, const Machine& host, const std::string& path);

/// A row of what a file says of a collective, with both bandwidths and what the calibrated machine predicts, and the
/// table of such rows.
Json collective_row(const std::string& file, const calibrate::RoundTrip& trip);
Table collective_table();

}  // namespace rehearse::cli
