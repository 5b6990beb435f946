// SPDX-License-Identifier: Apache-2.0
// Profiles of frameworks.
#include "fuzz/target.hpp"
#include "models/frameworks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] { models::parse_framework(fuzz::text_of(data, size), "fuzz", "fuzz.toml"); });
}
