// SPDX-License-Identifier: Apache-2.0
// Files of measurements in, samples out: JSON of Google Benchmark, of `rehearse bench` and of NCCL
// Inspector, the text of nccl-tests and of the OSU micro-benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/samples.hpp"

namespace rehearse::calibrate {

/// A collective's time as a benchmark tells it; `bytes`: of the whole (collective_times.hpp). Of the kind "message" it
/// is one from a rank to another.
struct CollectiveRow {
    std::string kind;
    std::int64_t ranks = 0;
    Bytes bytes{};
    Seconds time{};
    bool in_place = false;
    std::int64_t hosts = 0;  // that its ranks are on; 0: the benchmark does not tell
    /// One of many messages that were in flight at a time (OSU's bandwidth): it shows what bytes take, and nothing of
    /// where messages start.
    bool streamed = false;
    std::string algorithm{};  // by which a plan has it simulated; empty: nobody said it
};

struct FileSamples {
    std::string where;  // "host7, 2024-05-01": what sources say; the file's name where it does not tell
    std::vector<Sample> compute;
    std::vector<MessageSample> messages;
    std::vector<std::string> skipped;          // what stands in the file and is of no use here, with the reason
    std::vector<CollectiveRow> collectives{};  // what `messages` were made of, one each
    bool asked_ranks = false;                  // it left open among how many ranks some were
};

/// A benchmark's name is a problem, "/" and who ran it; "p2p:n2:1024B:f32/comm/direct" is a message, and
/// "allreduce:n4:1024B:f32/comm/ring" a collective. Kernels that a run takes only where it is asked for them by name
/// are skipped. A collective among n ranks counts as a ring's rounds (collective_times.hpp), sums included. `ranks`: of
/// OSU's collectives, and of logs of nccl-tests, that do not tell. InputError "origin:line: ..." for a file that is
/// none of these, or holds nothing that prices can be made of.
FileSamples read_samples(std::string_view text, const std::string& origin, std::int64_t ranks = 0);

}  // namespace rehearse::calibrate
