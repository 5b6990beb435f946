// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/methods/servers.hpp"
#include "sim/check/certificate.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/in_switch.hpp"
#include "sim/host/overlap.hpp"
#include "sim/modes/asynchronous.hpp"
#include "sim/modes/exact.hpp"
#include "sim/modes/folded.hpp"
#include "sim/network/adaptive.hpp"

namespace rehearse::sim {

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

namespace {

// SimGrid simulates some hundred thousand messages a second.
constexpr std::int64_t many_messages = 50'000;

// As exact mode would send, without making every round.
std::int64_t message_count(const Schedule& schedule, const Wiring& wiring) {
    std::int64_t count = 0;
    const auto classes = static_cast<std::int64_t>(schedule.classes.size());
    for (const RankClass& rank_class : schedule.classes) {
        for (const Step& step : rank_class.steps) {
            const auto* bucket = std::get_if<Communicate>(&step.action);
            if (bucket == nullptr) continue;
            const Groups groups = groups_along(schedule.mesh, bucket->axis, bucket->algorithm, wiring);
            const std::optional<InSwitch> sums = in_switch(call_of(*bucket), groups, wiring);
            const Collective rounds = rounds_of(sums ? sums->rounds(call_of(*bucket)) : call_of(*bucket), groups);
            for (const Phase& phase : rounds.phases()) {
                const auto messages = static_cast<std::int64_t>(rounds.messages(phase.first_round).size());
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
    const std::int64_t pieces = wiring.spread({}) ? message_pieces : 1;  // adaptive routing cuts messages up
    const bool small = message_count(steps.schedule(), wiring) * pieces * options.iterations <= many_messages;
    return small ? Mode::exact : Mode::folded;
}

bool same(const Degraded& a, const Degraded& b) { return a.link == b.link && a.share == b.share; }

// What each link carries is known of ranks that are followed one by one.
std::int64_t rank_by_rank(const Options& options) {
    return options.links ? Collectives::any_number : Collectives::many_ranks;
}

}  // namespace

/// What simulations with the same prices of messages and steps, on the same nodes, have in common.
struct Simulator::Setting {
    ZScore prices, messages;
    std::vector<Degraded> degraded;
    std::vector<std::int64_t> nodes;
    std::int64_t rank_by_rank;
    Wiring wiring;
    Steps steps;                 // at the pace that they are priced for
    std::optional<Kinds> kinds;  // of its ranks, once a simulation in folded mode has asked
    Collectives collectives;

    Setting(const Schedule& schedule, const Machine& machine, const Options& options, const Setting* first)
        : prices(options.z_score),
          messages(options.messages.value_or(options.z_score)),
          degraded(options.degraded),
          nodes(options.nodes),
          rank_by_rank(sim::rank_by_rank(options)),
          wiring(machine, messages, degraded, nodes),
          steps(first != nullptr && first->prices.value == prices.value ? Steps{first->steps, wiring, {}}
                                                                        : Steps{schedule, wiring, prices}),
          collectives(schedule.mesh, wiring, Collectives::few, rank_by_rank,
                      first != nullptr && first->nodes == nodes ? &first->collectives : nullptr) {}

    const Kinds& folded_kinds() {
        if (!kinds) kinds = kinds_of(steps, wiring);
        return *kinds;
    }

    bool serves(const Options& options) const {
        return prices.value == options.z_score.value &&
               messages.value == options.messages.value_or(options.z_score).value &&
               std::ranges::equal(degraded, options.degraded, same) && nodes == options.nodes &&
               rank_by_rank == sim::rank_by_rank(options);
    }
};

namespace {

// A host that was calibrated on one rank: messages cannot be priced, and one rank has none.
std::unique_ptr<const Machine> without_messages(const Schedule& schedule, const Machine& machine) {
    if (ranks(schedule.mesh) > 1 || node_count(machine) > 1 || machine.inside.fraction.value != 0) return nullptr;
    auto alone = std::make_unique<Machine>(machine);
    alone->inside.fraction.value = 1;
    for (NodeKind& node : alone->nodes) {
        for (NodeLink& link : node.links) link.bandwidth.value = std::max(link.bandwidth.value, Bandwidth{1});
    }
    return alone;
}

}  // namespace

Simulator::Simulator(const Schedule& schedule, const Machine& machine)
    : schedule_(schedule), alone_(without_messages(schedule, machine)), machine_(alone_ ? *alone_ : machine) {}

Simulator::~Simulator() = default;

void Simulator::check_once(const Options& options) {
    if (options.iterations < 1) {
        throw InputError(fmt::format("--steps: at least 1 training step, not {}", options.iterations));
    }
    if (!(options.quorum > 0 && options.quorum <= 1)) {
        throw InputError(fmt::format("quorum {}: a share of the ranks above 0, at most 1", options.quorum));
    }
    if (options.quorum < 1 && schedule_.methods.get<Servers>().count > 0) {
        throw InputError(
            "--quorum and --backup: with servers no rank waits for others in a step; the plan says when an epoch ends, "
            "like server=2:quorum=0.75");
    }
    if (!machine_.shared_cores.empty() && !options.nodes.empty()) {
        throw InputError(
            fmt::format("machine '{}' has devices that share cores: a job is placed on its first nodes, as "
                        "nothing says who shares cores elsewhere",
                        machine_.name));
    }
    if (!checked_) check(schedule_);
    checked_ = true;
}

Simulator::Setting& Simulator::setting(const Options& options) {
    check_once(options);
    const auto found = std::ranges::find_if(settings_, [&](const auto& made) { return made->serves(options); });
    if (found != settings_.end()) return **found;
    const Setting* first = settings_.empty() ? nullptr : settings_.front().get();
    return *settings_.emplace_back(std::make_unique<Setting>(schedule_, machine_, options, first));
}

Prediction Simulator::simulate(const Options& options) {
    Setting& with = setting(options);
    Steps steps{with.steps, with.wiring, {options.pace, options.quorum}};
    const auto title = [&](Prediction& prediction) {
        prediction.timeline.title =
            fmt::format("{} on {}, {}, predicted", schedule_.network.name, machine_.name, schedule_.plan);
    };
    if (schedule_.methods.get<Servers>().count > 0) {
        Prediction prediction = simulate_asynchronous(steps, with.wiring, options);
        title(prediction);
        prediction.bounds = certify(prediction.timeline, steps, with.wiring);
        prediction.bounds.wire = std::max(prediction.bounds.wire, least_trading(steps, with.wiring));
        return prediction;
    }
    const Mode mode = chosen(steps, with.wiring, options);
    const auto simulated = [&] {
        return mode == Mode::exact ? simulate_exact(steps, with.wiring, options.iterations, options.links)
                                   : simulate_folded({steps, with.folded_kinds(), with.wiring}, with.wiring,
                                                     with.collectives, options.iterations, options.links);
    };
    Prediction prediction = simulated();
    for (int i = overlap_rounds(machine_, schedule_); i > 0; --i) {
        steps.lengthen(losses(steps, with.wiring, prediction.timeline));
        prediction = simulated();
    }
    title(prediction);
    prediction.timeline.ranks = steps.ranks();
    prediction.bounds = certify(prediction.timeline, steps, with.wiring);
    return prediction;
}

Seconds Simulator::step(const Options& options) {
    const bool once = options.iterations == 1 && schedule_.methods.get<Servers>().count == 0 &&
                      overlap_rounds(machine_, schedule_) == 0;
    if (once) {
        Setting& with = setting(options);
        const Steps steps{with.steps, with.wiring, {options.pace, options.quorum}};
        const bool folded = chosen(steps, with.wiring, options) == Mode::folded;
        if (folded) return folded_step({steps, with.folded_kinds(), with.wiring}, with.wiring, with.collectives);
    }
    return summarize(schedule_, simulate(options).timeline).step;
}

Prediction simulate(const Schedule& schedule, const Machine& machine, const Options& options) {
    return Simulator{schedule, machine}.simulate(options);
}

}  // namespace rehearse::sim
