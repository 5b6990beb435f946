// SPDX-License-Identifier: Apache-2.0
// Experiment files of the window.
#include "fuzz/target.hpp"
#include "models/experiment_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        if (models::is_experiment(fuzz::text_of(data, size))) models::load_experiment(file.path());
    });
}
