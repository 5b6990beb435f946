// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "core/ring_attention.hpp"
#include "core/weight_versions.hpp"
#include "schedule/activations.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/memory_of_software.hpp"
#include "schedule/methods/gathers.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/methods/server_memory.hpp"

namespace rehearse::schedule {

namespace {

/// Elements that this rank keeps of weights, their gradients and the optimizer's numbers (ZeRO shares them).
struct Kept {
    double weights = 0, gradients = 0, updated = 0;
};

/// Counts, of each bucket, how often its gradients are reduce-scattered as soon as they are made: before those of
/// another bucket are made or scattered, beside which the whole bucket would lie. (The bucket at work is
/// MemoryUse::communication.)
std::vector<int> scattered_at_once(const RankClass& rank_class) {
    const std::vector<int> used = buckets_used(rank_class);
    std::vector<int> times(rank_class.part.buckets.size());
    int last_made = -1;
    for (std::size_t i = 0; i < used.size(); ++i) {
        const auto* compute = std::get_if<Compute>(&rank_class.steps[i].action);
        if (compute != nullptr && used[i] >= 0) {
            const Problem& problem = compute->problem;
            const bool gives = problem.pass == Pass::backward_weights ||
                               (problem.pass == Pass::backward_data && gradients_together(problem.op));
            if (gives) last_made = used[i];
        }
        const auto* action = std::get_if<Communicate>(&rank_class.steps[i].action);
        if (action == nullptr || !action->of_bucket() || action->kind != CollectiveKind::reduce_scatter) continue;
        if (action->bucket() == last_made) {
            ++times[at(action->bucket())];
        } else {
            last_made = -1;
        }
    }
    return times;
}

/// Of all buckets. Gradients that are summed once for several micro-batches, or behind those of other buckets, are kept
/// whole until then.
Kept kept_by(const Schedule& schedule, const RankClass& rank_class) {
    const std::vector<Bucket>& buckets = rank_class.part.buckets;
    std::vector<bool> updated(buckets.size()), update_shared(buckets.size());  // by this rank
    const std::vector<int> scattered = scattered_at_once(rank_class);
    const int own_micro_batches = schedule.micro_batches / rank_class.copies;
    for (const Step& step : rank_class.steps) {
        const auto* update = std::get_if<Update>(&step.action);
        if (update != nullptr) {
            updated[static_cast<std::size_t>(update->bucket)] = true;
            update_shared[static_cast<std::size_t>(update->bucket)] = update->sharded >= 0;
        }
    }
    const bool weights_shared = gathers_weights(rank_class);
    const int versions = weight_versions(rank_class);
    Kept kept;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        const auto whole = static_cast<double>(buckets[b].elements);
        const double piece =
            update_shared[b] ? whole / static_cast<double>(size_of(schedule.mesh, buckets[b].axis)) : whole;
        kept.weights += weights_shared ? piece : versions * whole;
        if (updates_directly(rank_class.part.network, buckets[b])) continue;
        kept.gradients += scattered[b] == own_micro_batches ? piece : whole;
        if (updated[b]) kept.updated += piece;
    }
    if (weights_shared) kept.weights += static_cast<double>(most_gathered(rank_class));
    return kept;
}

}  // namespace

Bytes total(const MemoryUse& use) {
    return use.weights + use.master_weights + use.gradients + use.optimizer + use.communication + use.activations +
           use.activation_gradients;
}

/// Elements of a collective's memory that are in no tensor. Of a halo: the rows from others, and as many for them. Of
/// an exchange: what is sent and what comes. Of a ring, two blocks of keys and values; backward of their gradients,
/// too, and two that have been made and wait to be added.
std::int64_t buffered(const Communicate& communicate) {
    if (communicate.algorithm.name.starts_with(shift_first))
        return communicate.elements * (communicate.pass == Pass::forward ? 1 : 3);
    if (communicate.kind == CollectiveKind::all_to_all) return 2 * communicate.elements;
    if (communicate.kind != CollectiveKind::halo) return communicate.elements;
    const Halo& halo = communicate.algorithm.halo;
    const bool lends = communicate.algorithm.name == "lend";
    const std::int64_t row = communicate.elements / (halo.size + (lends ? 1 : 2) * halo.own);
    return 2 * row * (halo.size - (halo.lent_end(0, 0) - halo.lent_begin(0, 0)));
}

MemoryUse memory_use(const Schedule& schedule, const RankClass& rank_class) {
    const Network& network = rank_class.part.network;
    const DataType update = update_type(schedule.precision);
    const Kept kept = kept_by(schedule, rank_class);
    MemoryUse use;
    use.weights = kept.weights * size_of(compute_type(schedule.precision)) +
                  static_cast<double>(network.state) * size_of(DataType::f32);
    const bool lets_go = gathers_weights(rank_class);  // of operands, too, which are made of what is gathered
    for (const Layer& layer : network.layers) {
        if (lets_go) break;
        use.weights += Bytes{static_cast<double>(operand_bytes(schedule.precision, layer.op))};
    }
    if (update != compute_type(schedule.precision)) use.master_weights = kept.updated * size_of(update);
    use.gradients = kept.gradients * size_of(wire_type(schedule.precision));
    use.optimizer = static_cast<double>(moments(schedule.optimizer)) * kept.updated * size_of(update);
    add_activations(schedule, rank_class, use);
    for (const Step& step : rank_class.steps) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate == nullptr) continue;
        const Bytes buffer = static_cast<double>(buffered(*communicate)) * size_of(communicate->type);
        use.communication = std::max(use.communication, buffer);
    }
    const Bytes copies = copied_to_buckets(schedule, rank_class) * size_of(wire_type(schedule.precision));
    use.communication = std::max(use.communication, copies);
    for (const Method* method : methods()) {
        if (method->add_memory != nullptr) method->add_memory(schedule, rank_class, use);
    }
    return use;
}

bool keeps_for_methods(const Schedule& schedule) {
    if (schedule.methods.get<Servers>().count > 0) return true;
    const MemoryUse before{Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}, Bytes{1}};
    for (const RankClass& rank_class : schedule.classes) {
        for (const Method* method : methods()) {
            MemoryUse use = before;
            if (method->add_memory != nullptr) method->add_memory(schedule, rank_class, use);
            if (total(use) > total(before)) return true;
        }
    }
    return false;
}

std::vector<NamedUse> memory_uses(const Schedule& schedule) {
    std::vector<NamedUse> all;
    for (const RankClass& rank_class : schedule.classes)
        all.push_back({rank_class.name, memory_use(schedule, rank_class)});
    if (all_devices(schedule) > ranks(schedule.mesh)) all.push_back({"server", server_memory(schedule)});
    return all;
}

MemoryUse memory_use(const Schedule& schedule) {
    MemoryUse fullest;
    for (const NamedUse& each : memory_uses(schedule)) {
        if (total(each.use) > total(fullest)) fullest = each.use;
    }
    return fullest;
}

std::vector<Tightest> tightest_of_classes(const Schedule& schedule, const Machine& machine) {
    std::vector<const DeviceClass*> smallest(schedule.classes.size());
    const std::int64_t asked = machine.classes.size() > 1 ? ranks(schedule.mesh) : 0;
    for (RankIndex rank{0}; rank < asked; ++rank) {
        const DeviceClass*& known = smallest[static_cast<std::size_t>(class_of(schedule, rank))];
        const DeviceClass& device = rehearse::class_of(machine, rank);
        if (known == nullptr || device.memory.value < known->memory.value) known = &device;
    }
    std::vector<Tightest> all;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const DeviceClass* device = smallest[c] == nullptr ? &rehearse::class_of(machine, 0) : smallest[c];
        all.push_back({static_cast<int>(c), device, memory_use(schedule, schedule.classes[c])});
    }
    return all;
}

Tightest tightest(const Schedule& schedule, const Machine& machine) {
    std::vector<Tightest> all = tightest_of_classes(schedule, machine);
    const MemoryUse server = server_memory(schedule);
    for (std::int64_t device = ranks(schedule.mesh); device < all_devices(schedule); ++device)
        all.push_back({no_class, &rehearse::class_of(machine, device), server});
    return std::ranges::max(all, {}, &Tightest::share);
}

std::vector<MemoryRow> rows(const MemoryUse& use) {
    return {{"weights", use.weights},
            {"master weights", use.master_weights},
            {"gradients", use.gradients},
            {"optimizer", use.optimizer},
            {"communication", use.communication},
            {"activations", use.activations},
            {"activation gradients", use.activation_gradients},
            {"total", total(use)}};
}

}  // namespace rehearse::schedule
