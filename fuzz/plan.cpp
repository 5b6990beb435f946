// SPDX-License-Identifier: Apache-2.0
// Plans, on the layers of LeNet-5 on up to eight devices: refused, or a schedule that passes its checks.
#include "schedule/plan.hpp"
#include "fuzz/target.hpp"
#include "models/models.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    static const Network network = models::load_network("lenet5");
    static const Machine machine = models::load_machine("titanx-server");
    return fuzz::refusing([&] {
        const schedule::Plan plan = schedule::parse_plan(fuzz::text_of(data, size));
        for (const std::int64_t devices : {1, 2, 4, 8}) {
            fuzz::refusing(
                [&] { schedule::make_schedule(network, machine, plan, {.devices = devices, .batch_per_device = 12}); });
        }
    });
}
