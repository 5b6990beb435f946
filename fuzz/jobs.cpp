// SPDX-License-Identifier: Apache-2.0
// Tables of jobs and of speeds of a cluster.
#include "cluster/jobs.hpp"
#include "cluster/speeds.hpp"
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] { cluster::read_jobs(text, "fuzz.csv"); });
    return fuzz::refusing([&] { cluster::read_speeds(text, "fuzz.csv"); });
}
