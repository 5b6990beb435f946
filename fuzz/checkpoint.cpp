// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a small transformer, and of ranks with states of their own, in HDF5.
#include "run/checkpoint/checkpoint.hpp"
#include "fuzz/target.hpp"
#include "models/models.hpp"
#include "run/data/hdf5.hpp"
#include "schedule/plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    static const Schedule schedule = [] {
        const Network network = models::load_network("gpt-h8-a2-l1-v9@4");
        const Machine machine = models::load_machine("titanx-server");
        return schedule::make_schedule(network, machine, schedule::parse_plan("data"), {.devices = 1});
    }();
    // HDF5 makes half a megabyte for each file that it opens: kept for the next one, it is not mapped anew each time.
    static const bool kept = H5set_free_list_limits(-1, -1, 1 << 22, 1 << 18, 1 << 24, 1 << 20) >= 0;
    require(kept, "HDF5 keeps its structures");
    const fuzz::NamedFile file{data, size};
    fuzz::refusing([&] { run::load(file.path(), schedule); });
    return fuzz::refusing([&] {
        run::load(file.path(), run::RankStates{.network = schedule.network.name,
                                               .optimizer = "sgd",
                                               .plan = "data=1:local=2",
                                               .ranks = std::vector<std::vector<float>>(1)});
    });
}
