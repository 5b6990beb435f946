// SPDX-License-Identifier: Apache-2.0
// A config.json of Hugging Face: what comes out is a network that can be.
#include "core/network.hpp"
#include "fuzz/target.hpp"
#include "models/huggingface/huggingface.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        const Network network = models::load_config(file.path());
        try {
            check(network);
        } catch (const InputError& error) {
            require(false, error.what());
        }
    });
}
