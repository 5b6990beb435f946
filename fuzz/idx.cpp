// SPDX-License-Identifier: Apache-2.0
// IDX files, as MNIST has them.
#include "fuzz/target.hpp"
#include "run/checkpoint/files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        run::read_idx(file.path());
    });
}
