// SPDX-License-Identifier: Apache-2.0
// ONNX files, with and without operators that are not known, and for who runs them: what comes out is a network that
// can be.
#include <array>

#include "core/network.hpp"
#include "fuzz/target.hpp"
#include "models/models.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::array<models::ImportOptions, 3> ways{{{}, {.allow_unknown = true, .unfold = true}, {.values = true}}};
    const fuzz::MemoryFile file{data, size};
    for (const models::ImportOptions& options : ways) {
        fuzz::refusing([&] {
            const Network network = models::import_onnx(file.path(), options);
            try {
                check(network);
            } catch (const InputError& error) {
                require(false, error.what());
            }
        });
    }
    return 0;
}
