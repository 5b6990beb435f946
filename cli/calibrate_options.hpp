// SPDX-License-Identifier: Apache-2.0
// What `rehearse calibrate` was asked for, whichever way it measures or reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/message_fit.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"
#include "cli/tuned.hpp"

namespace rehearse::cli {

/// What carries messages between ranks: MPI, or the sockets of a framework that does without.
enum class Transport { mpi, sockets };

/// Large: one member an option of the command line.
struct CalibrateOptions {
    Common common;
    bool quick = false, report = false;
    std::vector<std::string> models{"lenet5", "resnet32"}, plans{"data"};
    std::vector<std::int64_t> batches{32};
    std::string backend, algorithm, machine_out, samples_out, plot, fuse{default_fuse};
    std::vector<std::string> samples;  // files; then nothing is measured
    std::vector<std::string> kernels;  // files of a few measured kernels; nor then
    std::string machine;               // that they are of
    std::vector<std::string> traces;   // profiles of training; then nothing is measured
    Precision precision = Precision::fp32;
    Optimizer optimizer = Optimizer::sgd;
    std::optional<calibrate::Between> between{};  // absent: as the files tell
    std::int64_t ranks = 0, nodes = 0;            // 0: as the files tell
    Seconds budget{0};                            // 0: by --quick
    std::string device = "cpu";
    Transport transport = Transport::mpi;
    Tune tune = Tune::on;
    Bytes scratch_limit = kernels::default_scratch_limit;
};

}  // namespace rehearse::cli
