// SPDX-License-Identifier: Apache-2.0
// Machine files: what is read says the same when it is written and read again.
#include "fuzz/target.hpp"
#include "models/models.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] {
        const Machine machine = models::parse_machine(fuzz::text_of(data, size), "fuzz.toml");
        const std::string text = models::to_toml(machine);
        try {
            require(models::to_toml(models::parse_machine(text, "again.toml")) == text, "a machine reads as written");
        } catch (const InputError& error) {
            require(false, error.what());
        }
    });
}
