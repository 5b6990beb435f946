// SPDX-License-Identifier: Apache-2.0
// Recordings of PyTorch's profiler: calls in each other, steps, and what a rank's program is made of.
#include "trace/recording.hpp"

#include <array>

#include "fuzz/target.hpp"
#include "trace/recorded_programs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        const std::array<Recording, 1> recordings{trace::read_recording(file.path())};
        fuzz::refusing([&] { trace::timeline_of(recordings[0]); });
        trace::programs_of(recordings);
    });
}
