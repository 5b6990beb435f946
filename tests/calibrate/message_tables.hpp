// SPDX-License-Identifier: Apache-2.0
// Made-up machines, tables of known truth, and what the machine that was fitted to one says of it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "calibrate/message_fit.hpp"
#include "models/models.hpp"
#include "schedule/mesh.hpp"
#include "sim/collective/price.hpp"

namespace rehearse::calibrate {

inline constexpr double few_percent = 0.03;

inline Machine machine_of(std::string_view node, std::int64_t nodes, std::string_view reduce, std::string_view fabric) {
    return models::parse_machine(fmt::format(R"(
name = "m"
summary = "m"
[[device]]
name = "card"
source = "made up"
memory = "80GB"
memory_bandwidth = "2000GBps"
launch = "4us"
[device.peak]
f32 = "19TFLOPS"
[[node]]
name = "node"
count = {0}
source = "made up"
{1}
[fabric]
source = "made up"
link = "25GBps"
latency = "{3}"
hop_latency = "100ns"
[fabric.star]
[messaging.inside]
source = "made up"
overhead = "2us"
fraction = 0.8
reduce = "{2}"
error = 0.3
[messaging.across]
source = "made up"
overhead = "5us"
fraction = 0.9
reduce = "{2}"
error = 0.3
)",
                                             nodes, node, reduce, fabric),
                                 "m.toml");
}

// Every two of four cards joined by 100 GB/s, and a network card for each.
inline constexpr std::string_view mesh_of_four = R"(
devices = [{ class = "card", name = "gpu", count = 4 }]
nics = [{ name = "nic", count = 4 }]
bridges = [{ name = "cpu", kind = "processor" }]
[[node.link]]
all_pairs = ["gpu0", "gpu1", "gpu2", "gpu3"]
bandwidth = "100GBps"
[[node.link]]
from = ["gpu0", "gpu1", "gpu2", "gpu3", "nic0", "nic1", "nic2", "nic3"]
to = "cpu"
bandwidth = "63GBps"
)";
inline constexpr std::string_view one_card = R"(
devices = [{ class = "card", name = "gpu", count = 1 }]
nics = [{ name = "nic" }]
bridges = [{ name = "cpu", kind = "processor" }]
[[node.link]]
from = ["gpu0", "nic"]
to = "cpu"
bandwidth = "63GBps"
)";

// Four cards on a switch that sums, 450 GB/s each.
inline constexpr std::string_view summing_switch = R"(
devices = [{ class = "card", name = "gpu", count = 4 }]
nics = [{ name = "nic", count = 4 }]
bridges = [{ name = "cpu", kind = "processor" }, { name = "switch", kind = "nvlink" }]
[[node.link]]
from = ["gpu0", "gpu1", "gpu2", "gpu3"]
to = "switch"
bandwidth = "450GBps"
[[node.link]]
from = ["gpu0", "gpu1", "gpu2", "gpu3", "nic0", "nic1", "nic2", "nic3"]
to = "cpu"
bandwidth = "63GBps"
[node.switch_sums]
rate = "315GBps"
latency = "25us"
)";

// As plans sum by default, of full nodes; a message as the round of an all-gather of two ranks.
inline Seconds simulated(const Machine& machine, const CollectiveRow& row) {
    const bool message = row.kind == "message", sums = row.kind == "all_reduce";
    const Mesh mesh{{{"data", message ? 2 : row.ranks}}};
    sim::Call call;
    call.kind = sums ? CollectiveKind::all_reduce : CollectiveKind::all_gather;
    call.elements = static_cast<std::int64_t>(row.bytes.value / 4) * (message ? 2 : 1);
    if (sums)
        call.algorithm =
            schedule::settled(schedule::choose_all_reduce({}, machine, mesh, 0), machine, mesh, 0, Bytes{1e18});
    return sim::collective_time(call, mesh, machine);
}

/// What takes `start` + bytes x factor / rate, as a table of nccl-tests.
inline FileSamples table(std::int64_t ranks, std::int64_t hosts, double start, double factor, double rate,
                         double largest = 268435456) {
    FileSamples samples;
    samples.where = "table.txt";
    for (double bytes = 64; bytes <= largest; bytes *= 4) {
        const CollectiveRow row{"all_reduce", ranks, Bytes{bytes}, Seconds{start + bytes * factor / rate},
                                false,        hosts};
        const auto n = static_cast<double>(ranks);
        samples.collectives.push_back(row);
        samples.messages.push_back({row.bytes * (1 / n), row.time * (1 / (2 * (n - 1)))});
    }
    return samples;
}

inline void expect_times(const Machine& machine, const FileSamples& samples, Between between) {
    for (const CollectiveRow& each : samples.collectives) {
        const CollectiveRow row = placed(each, between, machine, "table.txt");
        SCOPED_TRACE(to_string(row.bytes));
        EXPECT_NEAR(simulated(machine, row) / row.time, 1, few_percent);
    }
}

inline void expect_met(const Machine& machine, const FileSamples& samples, Between between) {
    expect_times(machine, samples, between);
    const double error = between == Between::nodes ? machine.across.error : machine.inside.error;
    EXPECT_GE(error, 0.02) << "one table does not say how far the next one is off";
    EXPECT_LE(error, 0.05);
}

}  // namespace rehearse::calibrate
