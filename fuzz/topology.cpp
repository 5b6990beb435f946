// SPDX-License-Identifier: Apache-2.0
// What nvidia-smi, ibnetdiscover and lstopo print of a cluster: the machine file that is made of it can be read.
#include "fuzz/target.hpp"
#include "models/models.hpp"
#include "models/new_machine.hpp"

namespace {

using namespace rehearse;

// Of a card whose prices are made of a few figures: they are made anew each time that its file is read.
models::NewMachine plain() {
    models::NewMachine machine;
    machine.device = "mi300x";
    return machine;
}

void hold(const models::NewMachine& machine) {
    models::check(machine);
    const std::string text = models::to_toml(machine);
    try {
        models::parse_machine(text, "new.toml");
    } catch (const InputError& error) {
        require(false, error.what());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] { hold(models::with_nvidia_topology(plain(), text, "topo.txt")); });
    fuzz::refusing([&] { hold(models::with_ibnetdiscover(plain(), text, "fabric.txt")); });
    return fuzz::refusing([&] {
        const fuzz::MemoryFile file{data, size};
        hold(models::with_lstopo(plain(), file.path()));
    });
}
