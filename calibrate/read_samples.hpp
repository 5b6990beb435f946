// SPDX-License-Identifier: Apache-2.0
// Files of measurements in, samples out: JSON of Google Benchmark and of `rehearse bench`, the text of nccl-tests and
// of the OSU micro-benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/samples.hpp"

namespace rehearse::calibrate {

struct FileSamples {
    std::string where;  // "host7, 2024-05-01": what sources say; the file's name where it does not tell
    std::vector<Sample> compute;
    std::vector<MessageSample> messages;
    std::vector<std::string> skipped;  // what stands in the file and is of no use here, with the reason
};

/// A benchmark's name is a problem, "/" and who ran it; "p2p:n2:1024B:f32/comm/direct" is a message. An all-reduce
/// among n ranks (of nccl-tests, OSU) counts as a ring's: 2 (n - 1) rounds of messages of 1/n of the data, which is
/// what moves the fewest bytes (Patarasuk and Yuan 2009), sums included. `ranks`: of OSU's all-reduce, which does not
/// tell. InputError "origin:line: ..." for a file that is none of these, or holds nothing that prices can be made of.
FileSamples read_samples(std::string_view text, const std::string& origin, std::int64_t ranks = 0);

}  // namespace rehearse::calibrate
