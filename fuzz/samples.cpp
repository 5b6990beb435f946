// SPDX-License-Identifier: Apache-2.0
// Samples of kernels and of messages: DeepBench, Google Benchmark, nccl-tests, OSU.
#include "calibrate/read_samples.hpp"
#include "fuzz/target.hpp"
#include "models/kernel_samples.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] { models::read_samples(text, "fuzz.csv"); });
    return fuzz::refusing([&] { calibrate::read_samples(text, "fuzz.json", 4); });
}
