// SPDX-License-Identifier: Apache-2.0
// Requests for machine time, and file systems: both small TOML files.
#include "fuzz/target.hpp"
#include "models/file_systems.hpp"
#include "models/request_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    fuzz::refusing([&] { models::read_file_system(fuzz::text_of(data, size), "fuzz.toml"); });
    return fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        models::load_request(file.path());
    });
}
