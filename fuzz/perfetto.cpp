// SPDX-License-Identifier: Apache-2.0
// Traces in Perfetto's protobuf.
#include "fuzz/target.hpp"
#include "trace/formats.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] {
        const fuzz::MemoryFile memory{data, size};
        trace::InputFile file{memory.path()};
        trace::read_perfetto(file);
    });
}
