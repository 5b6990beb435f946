// SPDX-License-Identifier: Apache-2.0
// ONNX files, with and without operators that are not known: what comes out is a network that can be.
#include "core/network.hpp"
#include "fuzz/target.hpp"
#include "models/models.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    for (const bool allow_unknown : {false, true}) {
        fuzz::refusing([&] {
            const fuzz::MemoryFile file{data, size};
            const Network network =
                models::import_onnx(file.path(), {.allow_unknown = allow_unknown, .unfold = allow_unknown});
            try {
                check(network);
            } catch (const InputError& error) {
                require(false, error.what());
            }
        });
    }
    return 0;
}
