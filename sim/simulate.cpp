// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "sim/asynchronous.hpp"
#include "sim/certificate.hpp"
#include "sim/exact.hpp"
#include "sim/folded.hpp"
#include "sim/groups.hpp"
#include "sim/overlap.hpp"

namespace rehearse::sim {

namespace {

// SimGrid simulates some hundred thousand messages a second.
constexpr std::int64_t many_messages = 50'000;

// What steps take from each other depends on when they are, and that on what they take: it settles quickly, as each
// loss is a small part of its step.
constexpr int overlap_rounds = 4;

// As exact mode would send, without making every round.
std::int64_t message_count(const Schedule& schedule, const Wiring& wiring) {
    std::int64_t count = 0;
    const auto classes = static_cast<std::int64_t>(schedule.classes.size());
    for (const RankClass& rank_class : schedule.classes) {
        for (const Step& step : rank_class.steps) {
            const auto* bucket = std::get_if<Communicate>(&step.action);
            if (bucket == nullptr) continue;
            const Groups groups = groups_along(schedule.mesh, bucket->axis, bucket->algorithm, wiring);
            const Collective rounds = rounds_of(call_of(*bucket), groups);
            for (const Phase& phase : rounds.phases()) {
                const auto messages = static_cast<std::int64_t>(rounds.parcels(phase.first_round).size());
                count += phase.repeats * messages * groups.count / classes;
            }
        }
    }
    return count;
}

Mode chosen(const Steps& steps, const Wiring& wiring, const Options& options) {
    if (options.quorum < 1) {
        if (options.mode != Mode::exact && steps.schedule().classes.size() == 1) return Mode::folded;
        throw InputError("a quorum needs --mode folded and a plan without a pipeline");
    }
    if (options.mode != Mode::automatic) return options.mode;
    if (steps.ranks() > options.exact_limit) return Mode::folded;
    const bool small = message_count(steps.schedule(), wiring) * options.iterations <= many_messages;
    return small ? Mode::exact : Mode::folded;
}

}  // namespace

std::string_view to_string(Mode mode) {
    switch (mode) {
        case Mode::automatic:
            return "auto";
        case Mode::folded:
            return "folded";
        case Mode::exact:
            return "exact";
    }
    return "?";
}

Prediction simulate(const Schedule& schedule, const Machine& machine, const Options& options) {
    if (options.iterations < 1) {
        throw InputError(fmt::format("--steps: at least 1 training step, not {}", options.iterations));
    }
    if (!(options.quorum > 0 && options.quorum <= 1)) {
        throw InputError(fmt::format("quorum {}: a share of the ranks above 0, at most 1", options.quorum));
    }
    if (!machine.shared_cores.empty() && !options.nodes.empty()) {
        throw InputError(
            fmt::format("machine '{}' has devices that share cores: a job is placed on its first nodes, as "
                        "nothing says who shares cores elsewhere",
                        machine.name));
    }
    check(schedule);
    const Wiring wiring{machine, options.messages.value_or(options.quantile), options.degraded, options.nodes};
    Steps steps{schedule, wiring, options.quantile, {options.pace, options.quorum}};
    if (schedule.servers.count > 0) {
        Prediction prediction = simulate_asynchronous(steps, wiring, options);
        prediction.timeline.title =
            fmt::format("{} on {}, {}, predicted", schedule.network.name, machine.name, schedule.plan);
        certify(prediction.timeline, steps, wiring);
        return prediction;
    }
    const Mode mode = chosen(steps, wiring, options);
    const auto simulated = [&] {
        return mode == Mode::exact
                   ? simulate_exact(steps, wiring, options.iterations, options.links)
                   : simulate_folded(steps, wiring, options.iterations, Collectives::few, options.links);
    };
    Prediction prediction = simulated();
    for (int i = 0; loses_by_overlap(machine) && i < overlap_rounds; ++i) {
        steps.lengthen(losses(steps, wiring, prediction.timeline));
        prediction = simulated();
    }
    prediction.timeline.title =
        fmt::format("{} on {}, {}, predicted", schedule.network.name, machine.name, schedule.plan);
    prediction.timeline.ranks = steps.ranks();
    certify(prediction.timeline, steps, wiring);
    return prediction;
}

}  // namespace rehearse::sim
