// SPDX-License-Identifier: Apache-2.0
// Machines and schedules with round figures, so that expected times can be worked out by hand.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "core/units.hpp"

namespace rehearse::sim::test {

using namespace rehearse::literals;

inline const DeviceClass& plain_device() {
    static const DeviceClass device{.name = "device",
                                    .like = {},
                                    .peak = {{DataType::f32, {1_TFLOPS, "test"}}},
                                    .memory = {1_GB, "test"},
                                    .memory_bandwidth = {1_GBps, "test"},
                                    .launch = {Seconds{0}, "test"},
                                    .efficiencies = {},
                                    .measured = {},
                                    .model = {},
                                    .tiles = {}};
    return device;
}

inline Messaging messaging(Seconds overhead, double fraction = 1, Bandwidth reduce = {}, double error = 0) {
    return {.overhead = {overhead, "test"}, .fraction = {fraction, "test"}, .reduce = {reduce, "test"}, .error = error};
}

inline NodeLink node_link(int a, int b, Bandwidth bandwidth, Seconds latency = {}) {
    return {.a = a, .b = b, .bandwidth = {bandwidth, "test"}, .latency = {latency, "test"}};
}

/// One device and one NIC a node, joined by a link that is never the bottleneck, on the given topology; NIC links of
/// 10 GB/s, 2 us from NIC to NIC and 1 us a further switch, no other latency.
inline Machine one_device_nodes(std::int64_t nodes, Topology topology) {
    NodeKind kind{.name = "node", .count = nodes, .vertices = {}, .links = {}};
    kind.vertices = {{"dev0", VertexKind::device, 0}, {"nic0", VertexKind::nic, -1}};
    kind.links = {node_link(0, 1, Bandwidth{1e12})};
    Machine machine;
    machine.name = "plain";
    machine.origin = "plain.toml";
    machine.classes = {plain_device()};
    machine.nodes = {kind};
    machine.fabric = {std::move(topology), {10.0_GBps, "test"}, {2_us, "test"}, {1_us, "test"}};
    machine.inside = messaging(Seconds{0});
    machine.across = messaging(Seconds{0});
    return machine;
}

/// `nodes` nodes of four devices that reach each other at 50 GB/s, and other nodes at 10 GB/s each.
inline Machine four_device_nodes(std::int64_t nodes) {
    Machine machine = one_device_nodes(nodes, Star{});
    NodeKind& kind = machine.nodes[0];
    kind.vertices.clear();
    kind.links.clear();
    for (int d = 0; d < 4; ++d) kind.vertices.push_back({fmt::format("gpu{}", d), VertexKind::device, 0});
    kind.vertices.push_back({"switch", VertexKind::bridge, -1});
    kind.vertices.push_back({"nic", VertexKind::nic, -1});
    for (int d = 0; d < 4; ++d) kind.links.push_back(node_link(d, 4, 50.0_GBps, 1_us));
    kind.links.push_back(node_link(4, 5, 50.0_GBps, 1_us));
    machine.classes[0].peak[DataType::f32].value = FlopRate{10e12};
    machine.classes[0].memory_bandwidth.value = 800.0_GBps;
    machine.inside = messaging(4_us, 0.9, 200.0_GBps);
    return machine;
}

/// Like a node of Summit: two sockets, three GPUs on each, joined all to all in their socket and with it at 50 GB/s,
/// 64 GB/s between the sockets, a NIC of 12.5 GB/s a socket; a fat tree of 18 nodes a leaf.
inline Machine summit_like(std::int64_t nodes) {
    NodeKind kind{.name = "node", .count = nodes, .vertices = {}, .links = {}};
    for (int g = 0; g < 6; ++g) kind.vertices.push_back({fmt::format("gpu{}", g), VertexKind::device, 0});
    for (int s = 0; s < 2; ++s) kind.vertices.push_back({fmt::format("cpu{}", s), VertexKind::bridge, -1});
    for (int n = 0; n < 2; ++n) kind.vertices.push_back({fmt::format("nic{}", n), VertexKind::nic, -1});
    for (int s = 0; s < 2; ++s) {
        for (int g = 0; g < 3; ++g) {
            kind.links.push_back(node_link(3 * s + g, 6 + s, 50.0_GBps, 1_us));
            kind.links.push_back(node_link(3 * s + g, 3 * s + (g + 1) % 3, 50.0_GBps, 1_us));
        }
        kind.links.push_back(node_link(6 + s, 8 + s, 16.0_GBps, 1_us));
    }
    kind.links.push_back(node_link(6, 7, 64.0_GBps, 1_us));
    Machine machine;
    machine.name = "summit-like";
    machine.origin = "summit-like.toml";
    machine.classes = {plain_device()};
    machine.nodes = {kind};
    machine.fabric = {FatTree{{18, 18, 18}, {1, 1, 1}}, {12.5_GBps, "test"}, {1.5e-6_s, "test"}, {0.3e-6_s, "test"}};
    machine.inside = messaging(3_us, 0.9, 300.0_GBps);
    machine.across = messaging(5_us, 0.8, 200.0_GBps);
    return machine;
}

/// A compute step that takes exactly `time` on the machine's first device class: a measured problem.
inline Step compute_step(Machine& machine, std::string name, Seconds time, std::vector<int> after = {}) {
    // Every time is another problem: the number of rows tells them apart. They need less than they are measured to
    // take: 100 million of them a second are 800 MB.
    const Op op = MatMul{.m = 1, .n = 1, .k = static_cast<std::int64_t>(time.value * 1e8) + 1, .bias = false};
    const Problem problem{.op = op, .pass = Pass::forward, .batch = 1, .type = DataType::f32};
    machine.classes[0].measured[to_string(problem)] = {.median = time, .error = 0, .samples = 1, .source = "test"};
    return {.name = std::move(name),
            .stream = Stream::compute,
            .action = Compute{LayerIndex{0}, problem, 0},
            .after = std::move(after)};
}

inline Step all_reduce_step(int bucket, std::int64_t elements, const Algorithm& algorithm,
                            std::vector<int> after = {}) {
    return {.name = fmt::format("bucket{}:allreduce", bucket),
            .stream = Stream::communication,
            .action = Communicate{.elements = elements, .algorithm = algorithm, .of = BucketIndex{bucket}},
            .after = std::move(after)};
}

/// A part of one layer, with the buckets that the steps name.
inline Part part_for(const std::vector<Step>& steps) {
    Part part{{"by-hand", {{"layer", Input{{1}}, {}, {1}}}, 0}, {{0, 0, {}}}, {}};
    for (const Step& step : steps) {
        if (const auto* bucket = std::get_if<Communicate>(&step.action))
            part.buckets.push_back({{0}, bucket->elements});
    }
    return part;
}

/// Steps on every rank of one data axis.
inline Schedule data_schedule(std::int64_t ranks, std::vector<Step> steps) {
    Schedule schedule;
    schedule.plan = fmt::format("data={}", ranks);
    schedule.mesh.axes = {{"data", ranks}};
    schedule.network.name = "by-hand";
    Part part = part_for(steps);
    schedule.classes.push_back({.name = "all", .part = std::move(part), .steps = std::move(steps)});
    return schedule;
}

inline Seconds step_time(const Timeline& timeline) { return summarize(timeline).step; }

}  // namespace rehearse::sim::test
