// SPDX-License-Identifier: Apache-2.0
// A host that was calibrated on one rank: no message was ever measured.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Machine two_cores() {
    return models::parse_machine(
        "name = \"host\"\n[[device]]\nname = \"core\"\nhost = true\nmemory = { value = \"8GB\", source = \"t\" }\n"
        "memory_bandwidth = { value = \"10GBps\", source = \"t\" }\n"
        "[device.peak]\nf32 = { value = \"100GFLOPS\", source = \"t\" }\n"
        "[[node]]\nname = \"host\"\ndevices = [{ class = \"core\", name = \"core\", count = 2 }]\n"
        "bridges = [{ name = \"memory\", kind = \"processor\" }]\n"
        "[[node.link]]\nfrom = [\"core0\", \"core1\"]\nto = \"memory\"\nbandwidth = { value = \"1GBps\", source = "
        "\"t\" }\n"
        "[messaging.inside]\noverhead = { value = \"1us\", source = \"t\" }\nfraction = { value = 1, source = \"t\" }\n"
        "reduce = { value = \"1GBps\", source = \"t\" }\nerror = 0.1\n",
        "host.toml");
}

Schedule on(std::int64_t devices, const Machine& machine) {
    return schedule::make_schedule(models::load_network("lenet5"), machine, schedule::parse_plan("data"),
                                   {.devices = devices, .batch_per_device = 4});
}

TEST(OneRank, NeedsNoMessages) {
    Machine machine = two_cores();
    machine.inside = {};
    for (NodeLink& link : machine.nodes.front().links) link.bandwidth = {};
    const Schedule schedule = on(1, machine);
    EXPECT_GT(summarize(simulate(schedule, machine, {}).timeline).step, Seconds{0});
    const Schedule two = on(2, machine);
    EXPECT_THAT([&] { simulate(two, machine, {}); }, ThrowsMessage<InputError>(HasSubstr("needs a")));
}

}  // namespace
}  // namespace rehearse::sim
