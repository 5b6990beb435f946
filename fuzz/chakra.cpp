// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces of one rank, and groups of ranks in JSON (all that follows a NUL byte).
#include "fuzz/target.hpp"
#include "trace/programs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        trace::read_chakra({file.path()}, "");
    });
    return fuzz::refusing([&] {
        static constexpr std::uint8_t nothing = 0;
        const fuzz::MemoryFile empty{&nothing, 0};
        trace::read_chakra({empty.path(), empty.path()}, text);
    });
}
