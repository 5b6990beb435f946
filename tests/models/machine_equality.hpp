// SPDX-License-Identifier: Apache-2.0
// Field by field: two machines that pass are the same machine, but for where they were read from.
#pragma once

#include <gtest/gtest.h>

#include "core/collectives/library.hpp"
#include "core/machine.hpp"
#include "models/machine_file.hpp"
#include "prices/price_model.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::models {

template <typename T>
void expect_equal(const Sourced<T>& a, const Sourced<T>& b, const char* what) {
    EXPECT_EQ(a.value, b.value) << what;
    EXPECT_EQ(a.source, b.source) << what;
}

inline void expect_equal(const DeviceClass& a, const DeviceClass& b) {
    EXPECT_EQ(a.host, b.host);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.like, b.like);
    expect_equal(a.step_spread, b.step_spread, "step_spread");
    ASSERT_EQ(a.model == nullptr, b.model == nullptr);
    if (a.model != nullptr) {
        EXPECT_EQ(a.model->name(), b.model->name());
        EXPECT_EQ(a.model->board(), b.model->board());
        EXPECT_EQ(a.model->factors().size(), b.model->factors().size());
    }
    ASSERT_EQ(a.peak.size(), b.peak.size());
    for (const auto& [type, rate] : a.peak) expect_equal(rate, b.peak.at(type), "peak");
    expect_equal(a.memory, b.memory, "memory");
    expect_equal(a.memory_bandwidth, b.memory_bandwidth, "memory_bandwidth");
    expect_equal(a.launch, b.launch, "launch");
    const auto by_sample = [](const DeviceClass& d) { return d.model != nullptr && d.model->volumes_by_sample(); };
    EXPECT_EQ(by_sample(a), by_sample(b));
    ASSERT_EQ(a.tiles == nullptr, b.tiles == nullptr);
    if (a.tiles != nullptr) {
        for (const auto figure :
             {&TileModel::processors, &TileModel::large_tile, &TileModel::small_tile, &TileModel::depth,
              &TileModel::unaligned, &TileModel::memory, &TileModel::score_passes, &TileModel::masked_passes,
              &TileModel::elementwise_passes, &TileModel::loss_passes, &TileModel::dense_kernels,
              &TileModel::attention_kernels, &TileModel::loss_kernels, &TileModel::mixture_kernels}) {
            expect_equal((*a.tiles).*figure, (*b.tiles).*figure, "tiles");
        }
        expect_equal(a.tiles->issue, b.tiles->issue, "issue");
        EXPECT_EQ(a.tiles->error, b.tiles->error);
        EXPECT_EQ(a.tiles->before_model, b.tiles->before_model);
    }
    ASSERT_EQ(a.efficiencies.size(), b.efficiencies.size());
    for (std::size_t i = 0; i < a.efficiencies.size(); ++i) {
        const Efficiency &one = a.efficiencies[i], &two = b.efficiencies[i];
        EXPECT_EQ(std::tie(one.kind, one.pass, one.type, one.fraction, one.error, one.source),
                  std::tie(two.kind, two.pass, two.type, two.fraction, two.error, two.source));
    }
    ASSERT_EQ(a.measured.size(), b.measured.size());
    for (const auto& [problem, one] : a.measured) {
        const Measured& two = b.measured.at(problem);
        EXPECT_EQ(std::tie(one.median, one.error, one.samples, one.source),
                  std::tie(two.median, two.error, two.samples, two.source));
    }
}

inline void expect_equal(const Software& a, const Software& b) {
    EXPECT_EQ(std::tie(a.name, a.summary), std::tie(b.name, b.summary));
    for (const auto figure : {&Software::elementwise_passes, &Software::score_passes, &Software::masked_passes,
                              &Software::loss_passes, &Software::dense_kernels, &Software::attention_kernels,
                              &Software::loss_kernels, &Software::mixture_kernels}) {
        expect_equal(a.*figure, b.*figure, "software");
    }
    expect_equal(a.issue, b.issue, "issue");
    EXPECT_EQ(a.attention_kernel, b.attention_kernel);
    EXPECT_EQ(a.issues_ahead, b.issues_ahead);
    for (const auto figure :
         {&ModulePasses::rms, &ModulePasses::rms_backward, &ModulePasses::rotary, &ModulePasses::rotary_backward}) {
        expect_equal(a.modules.*figure, b.modules.*figure, "modules");
    }
}

inline void expect_equal(const NodeKind& a, const NodeKind& b) {
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.count, b.count);
    ASSERT_EQ(a.vertices.size(), b.vertices.size());
    for (std::size_t i = 0; i < a.vertices.size(); ++i) {
        const Vertex &one = a.vertices[i], &two = b.vertices[i];
        EXPECT_EQ(std::tie(one.name, one.kind, one.device_class, one.bridge, group_of(one)),
                  std::tie(two.name, two.kind, two.device_class, two.bridge, group_of(two)));
    }
    ASSERT_EQ(a.links.size(), b.links.size());
    for (std::size_t i = 0; i < a.links.size(); ++i) {
        EXPECT_EQ(std::tie(a.links[i].a, a.links[i].b), std::tie(b.links[i].a, b.links[i].b));
        expect_equal(a.links[i].bandwidth, b.links[i].bandwidth, "link bandwidth");
        expect_equal(a.links[i].latency, b.links[i].latency, "link latency");
    }
    expect_equal(a.sums.rate, b.sums.rate, "rate of switches that sum");
    expect_equal(a.sums.latency, b.sums.latency, "latency of switches that sum");
}

inline void expect_equal(const Fabric& a, const Fabric& b) {
    expect_equal(a.link, b.link, "link");
    expect_equal(a.latency, b.latency, "latency");
    expect_equal(a.hop_latency, b.hop_latency, "hop_latency");
    expect_equal(a.sums.rate, b.sums.rate, "rate of switches between nodes that sum");
    expect_equal(a.sums.latency, b.sums.latency, "latency of switches between nodes that sum");
    ASSERT_EQ(a.topology.index(), b.topology.index());
    if (const auto* tree = std::get_if<FatTree>(&a.topology)) {
        EXPECT_EQ(tree->down, std::get<FatTree>(b.topology).down);
        EXPECT_EQ(tree->taper, std::get<FatTree>(b.topology).taper);
        EXPECT_EQ(tree->cables, std::get<FatTree>(b.topology).cables);
        EXPECT_EQ(tree->rails, std::get<FatTree>(b.topology).rails);
    }
    if (const auto* one = std::get_if<Dragonfly>(&a.topology)) {
        const auto& two = std::get<Dragonfly>(b.topology);
        EXPECT_EQ(std::tie(one->groups, one->routers, one->nodes), std::tie(two.groups, two.routers, two.nodes));
        expect_equal(one->local, two.local, "local");
        expect_equal(one->global, two.global, "global");
        EXPECT_EQ(one->routing, two.routing);
    }
    if (const auto* one = std::get_if<DragonflyPlus>(&a.topology)) {
        const auto& two = std::get<DragonflyPlus>(b.topology);
        EXPECT_EQ(std::tie(one->groups, one->leaves, one->nodes, one->routing),
                  std::tie(two.groups, two.leaves, two.nodes, two.routing));
        expect_equal(one->up, two.up, "up");
        expect_equal(one->global, two.global, "global");
    }
    if (const auto* torus = std::get_if<Torus>(&a.topology)) {
        EXPECT_EQ(torus->dims, std::get<Torus>(b.topology).dims);
        expect_equal(torus->link, std::get<Torus>(b.topology).link, "torus link");
    }
}

inline void expect_equal(const Messaging& a, const Messaging& b) {
    expect_equal(a.overhead, b.overhead, "overhead");
    expect_equal(a.fraction, b.fraction, "fraction");
    expect_equal(a.reduce, b.reduce, "reduce");
    expect_equal(a.request, b.request, "request");
    EXPECT_EQ(a.error, b.error);
    ASSERT_EQ(a.pieces.size(), b.pieces.size());
    for (std::size_t i = 0; i < a.pieces.size(); ++i) {
        const MessagePiece &one = a.pieces[i], &two = b.pieces[i];
        EXPECT_EQ(std::tie(one.up_to, one.overhead, one.rate, one.source),
                  std::tie(two.up_to, two.overhead, two.rate, two.source));
    }
    expect_equal(a.overlap.core_time, b.overlap.core_time, "core_time");
    expect_equal(a.overlap.core_rate, b.overlap.core_rate, "core_rate");
    expect_equal(a.overlap.delay, b.overlap.delay, "delay");
    EXPECT_EQ(a.one_ring, b.one_ring);
}

inline void expect_equal(const CollectiveSoftware& a, const CollectiveSoftware& b) {
    EXPECT_EQ(std::tie(a.version, a.transport, a.sharp, a.nics_at, a.source),
              std::tie(b.version, b.transport, b.sharp, b.nics_at, b.source));
    if (a.source.empty()) return;  // the default, which a machine that was made without a file leaves out
    EXPECT_EQ(a.library->name, b.library->name);
}

inline void expect_equal(const OtherTables& a, const OtherTables& b) {
    ASSERT_EQ(a.transports.size(), b.transports.size());
    for (std::size_t i = 0; i < a.transports.size(); ++i) {
        const Transport &one = a.transports[i], &two = b.transports[i];
        EXPECT_EQ(one.name, two.name);
        expect_equal(one.link, two.link, "link of a transport");
        expect_equal(one.latency, two.latency, "latency of a transport");
        expect_equal(one.hop_latency, two.hop_latency, "hop_latency of a transport");
        ASSERT_EQ(one.inside.has_value(), two.inside.has_value());
        if (one.inside) expect_equal(*one.inside, *two.inside);
        ASSERT_EQ(one.across.has_value(), two.across.has_value());
        if (one.across) expect_equal(*one.across, *two.across);
    }
    EXPECT_EQ(a.taper_source, b.taper_source);
    ASSERT_EQ(a.charge.has_value(), b.charge.has_value());
    if (!a.charge) return;
    EXPECT_EQ(a.charge->unit, b.charge->unit);
    expect_equal(a.charge->factor, b.charge->factor, "factor of a charge");
    ASSERT_EQ(a.charge->queues.size(), b.charge->queues.size());
    for (std::size_t i = 0; i < a.charge->queues.size(); ++i) {
        const Queue &one = a.charge->queues[i], &two = b.charge->queues[i];
        EXPECT_EQ(std::tie(one.name, one.least, one.most, one.wall, one.source),
                  std::tie(two.name, two.least, two.most, two.wall, two.source));
    }
}

inline void expect_equal(const Machine& a, const Machine& b) {
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.summary, b.summary);
    ASSERT_EQ(a.classes.size(), b.classes.size());
    for (std::size_t i = 0; i < a.classes.size(); ++i) expect_equal(a.classes[i], b.classes[i]);
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (std::size_t i = 0; i < a.nodes.size(); ++i) expect_equal(a.nodes[i], b.nodes[i]);
    expect_equal(a.fabric, b.fabric);
    expect_equal(a.inside, b.inside);
    expect_equal(a.across, b.across);
    EXPECT_EQ(std::tie(a.in_situ.bias, a.in_situ.noise, a.in_situ.source, a.in_situ.doubt),
              std::tie(b.in_situ.bias, b.in_situ.noise, b.in_situ.source, b.in_situ.doubt));
    expect_equal(a.software, b.software);
    expect_equal(a.collectives, b.collectives);
    EXPECT_EQ(a.shared_cores, b.shared_cores);
    ASSERT_EQ(a.storage.size(), b.storage.size());
    for (std::size_t i = 0; i < a.storage.size(); ++i) {
        EXPECT_EQ(a.storage[i].name, b.storage[i].name);
        EXPECT_EQ(a.storage[i].per_node, b.storage[i].per_node);
        expect_equal(a.storage[i].read, b.storage[i].read, "storage");
        expect_equal(a.storage[i].write, b.storage[i].write, "storage");
        expect_equal(a.storage[i].client, b.storage[i].client, "client of a storage tier");
    }
}

}  // namespace rehearse::models
