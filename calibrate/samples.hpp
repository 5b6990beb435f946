// SPDX-License-Identifier: Apache-2.0
// What was measured on a host: medians, their spread and how many samples are behind them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/op.hpp"
#include "core/units.hpp"

namespace rehearse::calibrate {

/// One problem on one backend.
struct Sample {
    Problem problem;
    std::string backend, algorithm;
    Seconds median;
    double error = 0;              // relative standard deviation between samples
    std::int64_t count = 0;        // samples
    Seconds alone{};               // what it takes by itself, where the median is of whole training steps
    double scaled = 1;             // the median over `alone`, where no step had it: as of kernels like it
    std::vector<Seconds> times{};  // of a file: each of them
    std::string where{};           // of a file: "host7, 2024-05-01"
};

/// One message of `size`, from the call to send it to its arrival.
struct MessageSample {
    Bytes size;
    Seconds one_way;
};

template <typename Q>
struct Figure {
    Q median;
    double error = 0;
    std::int64_t count = 0;
};

/// Of one core while all ranks are busy: cores share caches and the memory interface.
struct HostFigures {
    Figure<FlopRate> peak;  // f32
    Figure<Bandwidth> memory_bandwidth;
    Figure<Seconds> launch;
};

/// One message out and one in, with nothing else to do and while the rank computes.
struct OverlapSample {
    Bytes size;
    Seconds alone, beside;  // beside: one way, of messages now and then
    Seconds lost;           // of the core
};

struct Messages {
    std::vector<MessageSample> samples;
    Figure<Bandwidth> reduce;  // incoming data added to a buffer
    std::vector<OverlapSample> overlap{};
    std::string over{};  // what carried them, where that was not MPI: "sockets"
};

struct Samples {
    std::string host, date;
    std::int64_t ranks = 1;  // that were busy at the same time
    std::vector<Sample> compute;
    HostFigures figures;
    std::optional<Messages> messages;  // between ranks of one node
    std::optional<Messages> across{};  // between nodes
    std::int64_t nodes = 1;            // that measured
};

}  // namespace rehearse::calibrate
