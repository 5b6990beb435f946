// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces of one rank, and groups of ranks in JSON, beside traces of two ranks that use one of them.
#include "fuzz/target.hpp"
#include "trace/programs.hpp"

namespace {

// Version 1.0.0, and node 1 "a", a collective: all-reduce (comm_type 0) of 4 bytes (comm_size) in group "1" (pg_name).
constexpr std::string_view one_collective{
    "\x07\x0a\x05"
    "1.0.0"
    "\x34\x08\x01\x12\x01"
    "a"
    "\x18\x07\x52\x0d\x0a\x09"
    "comm_size"
    "\x48\x04\x52\x0d\x0a\x09"
    "comm_type"
    "\x48\x00\x52\x0d\x0a\x07"
    "pg_name"
    "\xea\x01\x01"
    "1",
    61};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        trace::read_chakra({file.path()}, "");
    });
    return fuzz::refusing([&] {
        const auto* const trace = reinterpret_cast<const std::uint8_t*>(one_collective.data());
        const fuzz::MemoryFile file{trace, one_collective.size()};
        trace::read_chakra({file.path(), file.path()}, text);
    });
}
