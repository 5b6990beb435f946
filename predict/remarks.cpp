// SPDX-License-Identifier: Apache-2.0
#include "predict/remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/index.hpp"
#include "core/quorum.hpp"
#include "predict/faster_than_peak.hpp"
#include "predict/other_software.hpp"
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
        if (!used) notes.push_back(fmt::format("--degrade {}: the job is not on node {}", degraded.link, *node));
    }
    return notes;
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

Remarks remarks_of(const Network& network, const Machine& machine, const Prediction& prediction, bool foreign) {
    Remarks remarks{network.notes, schedule::guess_warnings(network)};
    const auto append = [](Sentences& to, const Sentences& more) { to.insert(to.end(), more.begin(), more.end()); };
    append(remarks.notes, schedule::notes_of_plan(network, prediction.setup.schedule));
    append(remarks.notes, condition_notes(prediction.setup));
    append(remarks.notes, staging_notes(prediction.points));
    append(remarks.warnings, machine_warnings(machine));
    append(remarks.warnings, faster_than_peak_warnings(prediction));
    append(remarks.warnings, other_software_warnings(prediction, foreign));
    return remarks;
}

}  // namespace rehearse::predict
