// SPDX-License-Identifier: Apache-2.0
#include "predict/conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"
#include "core/quorum.hpp"
#include "schedule/input.hpp"
#include "sim/host/learners.hpp"
#include "sim/host/staging.hpp"
#include "sim/network/storage.hpp"

namespace rehearse::predict {

namespace {

// Of the devices, the share that a step waits for: whole ones.
double waited_share(const Conditions& conditions, std::int64_t devices) {
    const auto all = static_cast<double>(devices);
    if (conditions.backup == 0) return static_cast<double>(waited_for(conditions.quorum, devices)) / all;
    if (conditions.backup < 0 || conditions.backup >= devices) {
        throw InputError(
            fmt::format("--backup {}: from 0 to {} of {} devices", conditions.backup, devices - 1, devices));
    }
    return static_cast<double>(devices - conditions.backup) / all;
}

// Of all devices of the job, those of servers behind those of ranks.
void slow_nodes(sim::Options& options, const std::vector<sim::SlowNode>& slow, const Machine& machine,
                const Schedule& schedule) {
    if (slow.empty()) return;
    options.pace = sim::paces(all_devices(schedule), machine, slow);
    for (std::int64_t s = 0; s < schedule.methods.get<Servers>().count; ++s)
        options.server_pace.push_back(options.pace[at(device_of_server(schedule, s))]);
    options.pace.resize(at(ranks(schedule.mesh)));
}

// The pace of a device is that of the last of its learners.
void slow_learners(sim::Options& options, const LearnerPaces& learners, const Schedule& schedule) {
    const Averaging& averaging = schedule.methods.get<Averaging>();
    if (learners.paces.empty() && !learners.first_idle) return;
    if (averaging.learners == 1) {
        throw InputError(
            fmt::format("--assign and --learner-paces: of several learners, as in --plan data:learners=2; "
                        "plan '{}' has none",
                        schedule.plan));
    }
    if (learners.paces.empty()) return;
    if (static_cast<int>(learners.paces.size()) != averaging.learners) {
        throw InputError(fmt::format("--learner-paces: {} given, but a device has {} learners", learners.paces.size(),
                                     averaging.learners));
    }
    const double pace = sim::pace_of_learners(learners.paces, averaging.period, learners.first_idle);
    options.pace.resize(static_cast<std::size_t>(ranks(schedule.mesh)), 1);
    for (double& each : options.pace) each *= pace;
}

/// The processes that read samples, all of them and those of the node that has most.
struct Readers {
    std::int64_t all = 0, of_a_node = 0;
};
Readers readers_of(const Schedule& schedule, const Machine& machine) {
    std::vector<bool> reads;  // by class
    for (const RankClass& rank_class : schedule.classes) reads.push_back(schedule::reads_samples(schedule, rank_class));
    Readers readers;
    std::map<std::int64_t, std::int64_t> by_node;
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        if (!reads[at(class_of(schedule, rank))]) continue;
        ++readers.all;
        readers.of_a_node = std::max(readers.of_a_node, ++by_node[locate(machine, rank).node]);
    }
    return readers;
}

}  // namespace

void check(const Conditions& conditions) {
    if (conditions.jitter.samples < 1) {
        throw InputError(fmt::format("--samples {}: at least 1", conditions.jitter.samples));
    }
    if (!(conditions.quorum > 0 && conditions.quorum <= 1)) {
        throw InputError(fmt::format("--quorum {}: a share of the ranks above 0, at most 1", conditions.quorum));
    }
    if (conditions.data_servers && !conditions.stage.empty()) {
        throw InputError("--data-servers send samples as they are read; --stage copies them before: give one of them");
    }
    const bool reads = conditions.data_servers || !conditions.input.empty();
    if (!reads && (!conditions.stage.empty() || conditions.sample)) {
        throw InputError("--stage and --sample need --input: the tier that training reads from");
    }
    if (conditions.reading && (conditions.input.empty() || conditions.data_servers)) {
        throw InputError("--reading says how samples are read from --input's tier, by the nodes that train");
    }
    if (conditions.checkpoint && conditions.checkpoint->every < 1) {
        throw InputError(fmt::format("--checkpoint-every {}: at least 1 step", conditions.checkpoint->every));
    }
    if (conditions.keep && (*conditions.keep < 1 || conditions.stage.empty())) {
        throw InputError(fmt::format("--keep {}: at least 1, and with --stage", *conditions.keep));
    }
}

Machine with_devices_per_node(Machine machine, std::int64_t each) {
    for (NodeKind& kind : machine.nodes) {
        if (each < 1 || each > devices_per_node(kind)) {
            throw InputError(fmt::format("placement: {} devices of each node '{}', which has {}", each, kind.name,
                                         devices_per_node(kind)));
        }
        std::vector<int> number;  // by vertex: its new one, or -1
        std::vector<Vertex> kept;
        std::int64_t devices = 0;
        for (const Vertex& vertex : kind.vertices) {
            const bool stays = vertex.kind != VertexKind::device || ++devices <= each;
            number.push_back(stays ? static_cast<int>(kept.size()) : -1);
            if (stays) kept.push_back(vertex);
        }
        const auto at = [&](int vertex) { return number[static_cast<std::size_t>(vertex)]; };
        std::erase_if(kind.links, [&](const NodeLink& link) { return at(link.a) < 0 || at(link.b) < 0; });
        for (NodeLink& link : kind.links) {
            link.a = at(link.a);
            link.b = at(link.b);
        }
        kind.vertices = std::move(kept);
    }
    return machine;
}

Bytes sample_of(const Conditions& conditions, const Network& network) {
    return conditions.sample ? *conditions.sample : schedule::sample_size(network);
}

sim::DataServers data_servers(const Conditions& conditions, const Network& network,
                              std::optional<std::int64_t> dataset) {
    if (dataset.value_or(0) < 1) throw InputError("--data-servers needs --dataset: how many samples there are");
    return {.count = conditions.data_servers->count,
            .cache = conditions.data_servers->cache,
            .samples = static_cast<double>(*dataset) * sample_of(conditions, network),
            .behind = conditions.input};
}

sim::Options conditioned(sim::Options options, const Conditions& conditions, const Machine& machine,
                         const Schedule& schedule, std::int64_t devices) {
    options.degraded = conditions.degraded;
    options.nodes = sim::placed_nodes(conditions.placement, machine, devices, conditions.seed);
    options.quorum = waited_share(conditions, devices);
    slow_nodes(options, conditions.slow, machine, schedule);
    slow_learners(options, conditions.learners, schedule);
    return options;
}

Machine with_reading(Machine machine, const Conditions& conditions, const Schedule& schedule) {
    const auto tier = std::ranges::find(machine.storage, conditions.input, &StorageTier::name);
    require(tier != machine.storage.end(), "the tier was found before");
    const Reading& reading = *conditions.reading;
    ReadPattern pattern = reading.pattern;
    pattern.sample = sample_of(conditions, schedule.network);
    const Readers readers = readers_of(schedule, machine);
    const ReadRates rates =
        read_rates(reading.system, pattern, readers.all, static_cast<double>(global_batch(schedule)));
    const Bandwidth node = static_cast<double>(readers.of_a_node) * rates.process;
    const auto lower = [&](Sourced<Bandwidth>& figure, Bandwidth rate) {
        if (!figure.source.empty() && figure.value <= rate) return;
        figure = {rate, fmt::format("{} read so (bound by {})", reading.system.name, to_string(rates.bound))};
    };
    if (tier->per_node) {
        lower(tier->read, node);
    } else {
        lower(tier->read, rates.together);
        lower(tier->client, node);
    }
    return machine;
}

void add_input(Schedule& schedule, const Conditions& conditions, Machine& machine) {
    if (!conditions.input.empty()) sim::storage_tier(machine, conditions.input);
    if (conditions.reading) machine = with_reading(std::move(machine), conditions, schedule);
    const schedule::InputData input{conditions.input, sample_of(conditions, schedule.network)};
    if (conditions.loader) {
        const bool ahead = conditions.loader->reads_ahead && !input.tier.empty();
        add_inline_input(schedule, ahead ? schedule::InputData{} : input,
                         sim::loader_tiers(machine, *conditions.loader, ranks(schedule.mesh)));
        if (ahead) schedule::add_input(schedule, input);
        machine = sim::with_loader(std::move(machine), *conditions.loader, schedule);
    } else if (!conditions.input.empty()) {
        schedule::add_input(schedule, input);
    }
}

}  // namespace rehearse::predict
