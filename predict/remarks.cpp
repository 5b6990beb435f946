// SPDX-License-Identifier: Apache-2.0
#include "predict/remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "core/index.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/quorum.hpp"
#include "predict/faster_than_peak.hpp"
#include "predict/other_software.hpp"
#include "schedule/memory.hpp"
#include "schedule/plan.hpp"
#include "schedule/remarks.hpp"

namespace rehearse::predict {

Sentences machine_warnings(const Machine& machine) {
    Sentences warnings;
    if (!machine.in_situ.doubt.empty()) warnings.push_back(machine.in_situ.doubt);
    for (const DeviceClass& device : machine.classes) {
        if (!device.launch.source.empty()) continue;
        warnings.push_back(
            fmt::format("device '{}' has no launch, so that small kernels cost next to nothing: give it in the "
                        "machine file (a GPU's is some 4us)",
                        device.name));
    }
    return warnings;
}

Sentences faster_than_peak_warnings(const Prediction& prediction) {
    const Machine& machine = prediction.setup.machine;
    Sentences warnings;
    for (const FasterThanPeak& one : faster_than_peak(prediction.setup.schedule, machine)) {
        warnings.push_back(fmt::format(
            "{}: the sample of '{}' on '{}', {} ({}), beats what the device's peak ({}) and memory allow, {}: one of "
            "them is wrong; the prediction takes the latter",
            machine.origin.empty() ? machine.name : machine.origin, one.problem, one.device, to_string(one.measured),
            one.sample, one.peak, to_string(one.least)));
    }
    return warnings;
}

Sentences other_software_warnings(const Prediction& prediction, bool foreign) {
    const OtherSoftware other = other_software(prediction, foreign, prediction.setup.framework.sockets);
    Sentences warnings;
    if (other.own_kernels > 0.5) {
        warnings.push_back(
            fmt::format("{:.0f} % of the computation are priced by measured kernels of this program, not of the "
                        "framework, which may take half or twice as long: give a measured step (--pilot 1=TIME) or "
                        "prices of your profile (calibrate --trace)",
                        100 * other.own_kernels));
    }
    if (other.other_messages) {
        warnings.emplace_back(
            "the framework's ranks talk over sockets, the machine's messages were measured of MPI: calibrate it with "
            "--transport sockets");
    }
    return warnings;
}

namespace {

// By how much computation, or communication, would have to differ.
std::string warning_of(const ComparedPilot& pilot) {
    std::string text = fmt::format(
        "the pilot of {} devices, {} a step, lies outside the 99 % band of the prediction "
        "{}, {} to {}",
        pilot.devices, to_string(pilot.measured),
        pilot.anchored_on ? fmt::format("anchored on {}", *pilot.anchored_on) : "without it",
        to_string(pilot.likely.low), to_string(pilot.likely.high));
    std::vector<std::string> causes;
    const bool possible = pilot.measured >= pilot.least;
    if (!possible) {
        causes.push_back(
            fmt::format("a faster machine than its file says, whose peaks and links need {}", to_string(pilot.least)));
    }
    if (possible && pilot.is_met()) {
        const bool slower = pilot.computation > 1;
        causes.push_back(fmt::format("computation {:.3g} times as {} as {}",
                                     slower ? pilot.computation : 1 / pilot.computation, slower ? "slow" : "fast",
                                     pilot.anchored_on ? fmt::format("on {}", *pilot.anchored_on) : "priced"));
    }
    if (pilot.messages) causes.push_back(fmt::format("exposed communication {:.3g} times as long", *pilot.messages));
    causes.emplace_back("another batch, precision or plan than the prediction has");
    text += "; it would be explained by ";
    for (std::size_t i = 0; i < causes.size(); ++i) text += (i == 0 ? "" : ", or by ") + causes[i];
    return text;
}

/// Of a link inside a node or behind its NICs, as --degrade names them: "node3:nic1:*"; else none.
std::optional<std::int64_t> node_of(std::string_view link) {
    constexpr std::string_view begin = "node";
    if (!link.starts_with(begin)) return std::nullopt;
    link.remove_prefix(begin.size());
    std::int64_t node = 0;
    const auto read = std::from_chars(link.data(), link.data() + link.size(), node);
    const bool whole = read.ec == std::errc{} && link.substr(at(read.ptr - link.data())).starts_with(':');
    return whole ? std::optional{node} : std::nullopt;
}

/// Where a job is that does not have the machine's first nodes: ", but on 0, 4, 8, 12".
std::string but_on(const std::vector<std::int64_t>& nodes) {
    constexpr std::size_t most = 8;
    if (nodes.empty()) return "";
    const auto told = std::span{nodes}.first(std::min(most, nodes.size()));
    return fmt::format(", but on {}{}", fmt::join(told, ", "), nodes.size() > most ? ", ..." : "");
}

}  // namespace

Sentences condition_notes(const Setup& setup) {
    Sentences notes;
    const sim::Options& options = setup.options;
    if (options.quorum < 1) {
        notes.push_back(
            fmt::format("a step waits for {} of {} devices: the samples of the others are thrown away and not counted",
                        waited_for(options.quorum, setup.devices), setup.devices));
    }
    const std::int64_t nodes = locate(setup.machine, setup.devices - 1).node + 1;
    for (const sim::SlowNode& slow : setup.conditions.slow) {
        if (slow.node < nodes) continue;
        notes.push_back(
            fmt::format("--slow {0}: the job is on {1} nodes, counted from 0: {0} is none of them", slow.node, nodes));
    }
    for (const sim::Degraded& degraded : setup.conditions.degraded) {
        const std::optional<std::int64_t> node = node_of(degraded.link);
        const bool used =
            !node || (options.nodes.empty() ? *node < nodes : std::ranges::count(options.nodes, *node) > 0);
        if (!used)
            notes.push_back(
                fmt::format("--degrade {}: the job is not on node {}{}", degraded.link, *node, but_on(options.nodes)));
    }
    return notes;
}

namespace {

/// Returns what a rank holds at its fullest moment where its blocks are not computed again. Nothing where schedules are
/// so long that a second one would take as long as the prediction.
std::optional<Bytes> without_recomputation(const Setup& setup, schedule::Plan plan) {
    constexpr std::size_t most_steps = 100'000;
    std::size_t steps = 0;
    for (const RankClass& rank_class : setup.schedule.classes) steps += rank_class.steps.size();
    if (steps > most_steps) return std::nullopt;
    plan.recompute = schedule::Recompute::none;
    plan.methods.edit<MemoryHabits>() = setup.schedule.methods.get<MemoryHabits>();
    const schedule::Job job{.devices = ranks(setup.schedule.mesh),
                            .batch_per_device = 1,
                            .global_batch = global_batch(setup.schedule),
                            .precision = setup.schedule.precision,
                            .optimizer = setup.schedule.optimizer};
    return schedule::make_schedule(setup.schedule.network, setup.machine, plan, job).memory_peak;
}

}  // namespace

Sentences recompute_notes(const Setup& setup) {
    const schedule::Plan plan = schedule::parse_plan(setup.schedule.plan);
    if (plan.recompute != schedule::Recompute::blocks) return {};
    const bool any = std::ranges::any_of(setup.schedule.classes, [](const RankClass& rank_class) {
        return std::ranges::any_of(rank_class.steps, &Step::recomputed);
    });
    if (!any)
        return {
            "recompute=blocks: no block of the network adds a shortcut between two places where a single tensor goes "
            "on, so that nothing is computed again"};
    const std::optional<Bytes> plain = without_recomputation(setup, plan);
    const Bytes now = schedule::total(schedule::memory_use(setup.schedule));
    if (!plain || now < *plain) return {};
    return {fmt::format("recompute=blocks saves no memory: {} with it, {} without", to_string(now), to_string(*plain))};
}

Sentences attention_notes(const Setup& setup) {
    const auto kept = [](const Layer& layer) {
        const auto* attention = std::get_if<Attention>(&layer.op);
        return attention != nullptr && attention->kept;
    };
    const schedule::Plan plan = schedule::parse_plan(setup.schedule.plan);
    const bool asked = plan.keep_attention || plan.recompute == schedule::Recompute::attention;
    if (asked || std::ranges::none_of(setup.schedule.network.layers, kept)) return {};
    const Software& software = setup.framework.passes ? *setup.framework.passes : setup.machine.software;
    return {fmt::format(
        "attention's probabilities lie in memory, as under {}: attention=fused is a program with FlashAttention",
        software.name)};
}

Sentences sums_notes(const std::vector<Point>& points) {
    std::map<std::string, std::vector<std::int64_t>> devices;  // by the reason
    for (const Point& point : points) {
        if (!point.rings.empty()) devices[point.rings].push_back(point.figures.devices);
    }
    Sentences notes;
    for (const auto& [why, on] : devices) {
        notes.push_back(
            fmt::format("allreduce=own: on {} devices gradients are summed by rings: {}", fmt::join(on, ", "), why));
    }
    return notes;
}

Sentences unsettled_warnings(const std::vector<Point>& points) {
    Sentences warnings;
    for (const Point& point : points) {
        if (point.drift < sim::settled_drift) continue;
        warnings.push_back(
            fmt::format("on {} devices ranks and servers have not settled in the steps that were simulated: their rate "
                        "still changes by {:.0f} % from one half of them to the other; more of them: --steps",
                        point.figures.devices, 100 * point.drift));
    }
    return warnings;
}

Sentences staging_notes(const std::vector<Point>& points) {
    Sentences notes;
    for (const Point& point : points) {
        if (!point.input || point.input->left_out == 0) continue;
        notes.push_back(
            fmt::format("--keep: on {} devices {} samples of the data set are on no node, and never trained on",
                        point.figures.devices, point.input->left_out));
    }
    return notes;
}

Sentences pilot_warnings(const Prediction& prediction) {
    Sentences warnings;
    if (prediction.pilots.empty()) return warnings;
    for (const ComparedPilot& pilot : prediction.pilots) {
        if (pilot.contradicts()) warnings.push_back(warning_of(pilot));
    }
    const ComparedPilot& anchor = prediction.pilots.front();
    if (!anchor.is_met()) {
        warnings.push_back(
            fmt::format("no scale of computation meets the pilot of {} devices, {} a step{}; the nearest, {:.3g}, "
                        "gives {}",
                        anchor.devices, to_string(anchor.measured),
                        anchor.met > anchor.measured ? ": communication and waiting alone take longer" : "",
                        anchor.computation, to_string(anchor.met)));
    }
    return warnings;
}

Sentences memory_warnings(const std::vector<Point>& points) {
    std::vector<std::int64_t> too_few;
    MemoryFit worst;
    const auto share = [](const MemoryFit& memory) { return memory.peak / std::max(memory.capacity, Bytes{1}); };
    for (const Point& point : points) {
        if (point.memory.fits) continue;
        too_few.push_back(point.figures.devices);
        if (share(point.memory) > share(worst)) worst = point.memory;
    }
    if (too_few.empty()) return {};
    return {
        fmt::format("does not fit on {} devices: a device has {} and would take {}, so that these points could not be "
                    "run and no other is relative to them",
                    fmt::join(too_few, ", "), to_string(worst.capacity), to_string(worst.peak))};
}

Remarks remarks_of(const Network& network, const Machine& machine, const Prediction& prediction, bool foreign) {
    Remarks remarks{network.notes, schedule::guess_warnings(network)};
    const auto append = [](Sentences& to, const Sentences& more) { to.insert(to.end(), more.begin(), more.end()); };
    append(remarks.notes, schedule::notes_of_plan(network, prediction.setup.schedule));
    append(remarks.notes, recompute_notes(prediction.setup));
    append(remarks.notes, attention_notes(prediction.setup));
    append(remarks.notes, condition_notes(prediction.setup));
    append(remarks.notes, sums_notes(prediction.points));
    append(remarks.notes, staging_notes(prediction.points));
    append(remarks.warnings, machine_warnings(machine));
    append(remarks.warnings, faster_than_peak_warnings(prediction));
    append(remarks.warnings, other_software_warnings(prediction, foreign));
    append(remarks.warnings, pilot_warnings(prediction));
    append(remarks.warnings, memory_warnings(prediction.points));
    append(remarks.warnings, unsettled_warnings(prediction.points));
    return remarks;
}

}  // namespace rehearse::predict
