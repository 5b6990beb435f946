// SPDX-License-Identifier: Apache-2.0
#include "calibrate/quick.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "calibrate/fit.hpp"
#include "calibrate/pieces.hpp"
#include "core/error.hpp"
#include "prices/host_model.hpp"

namespace rehearse::calibrate {

namespace {

// What a machine file may hold: a host that is busy makes single times a thousand times as long.
double bounded(double error) { return std::min(error, widest_error); }

std::string source(std::string_view where, std::int64_t count, double error) {
    return fmt::format("measured, {}, {} {}, residual {:.1f} %", where, count, count == 1 ? "sample" : "samples",
                       100 * error);
}

std::string source(const Samples& samples, std::int64_t count, double error) {
    return source(fmt::format("{}, {}", samples.host, samples.date), count, error);
}

template <typename Q>
Sourced<Q> sourced(const Samples& samples, const Figure<Q>& figure) {
    return {figure.median, source(samples, figure.count, figure.error)};
}

void apply_compute(DeviceClass& device, const Samples& samples) {
    device.peak[DataType::f32] = sourced(samples, samples.figures.peak);
    device.memory_bandwidth = sourced(samples, samples.figures.memory_bandwidth);
    device.launch = sourced(samples, samples.figures.launch);
    for (const Sample& sample : samples.compute) {
        device.measured[to_string(sample.problem)] = {
            sample.median, bounded(sample.error), sample.count,
            fmt::format("{} ({})", source(samples, sample.count, sample.error), sample.backend)};
    }
    device.efficiencies.clear();
    for (EfficiencyFit& fit : fit_efficiencies(samples.compute, device)) {
        fit.row.source = source(samples, fit.samples, fit.row.error);
        device.efficiencies.push_back(std::move(fit.row));
    }
    device.model = host_model(device);
}

constexpr const char* in_overhead = "part of the measured overhead of a message";

bool is_ours(const std::string& source) { return source.empty() || source.starts_with("measured"); }

// Links between cores are memory: they carry what one core copies through it, or what messages reached where that is
// more. A figure from a data sheet stays.
void apply_links(NodeKind& node, const Samples& samples, const Sourced<Bandwidth>& reached) {
    Sourced<Bandwidth> memory = sourced(samples, samples.figures.memory_bandwidth);
    if (reached.value > memory.value) memory = reached;
    for (NodeLink& link : node.links) {
        if (is_ours(link.bandwidth.source)) link.bandwidth = memory;
        if (link.latency.source.empty()) link.latency = {Seconds{0}, in_overhead};
    }
}

// Medians of the sizes are what lines are drawn through.
Overlap overlap(const Samples& samples, const std::vector<OverlapSample>& measured) {
    if (measured.empty()) return {};
    std::vector<MessageSample> lost;
    std::vector<double> delays;
    Bytes smallest = measured.front().size;
    for (const OverlapSample& each : measured) smallest = std::min(smallest, each.size);
    for (const OverlapSample& each : measured) {
        lost.push_back({each.size, std::max(each.lost, Seconds{1e-9})});
        if (each.size == smallest) delays.push_back((each.beside - each.alone).value);
    }
    const MessagePiece line = fit_line(lost);
    std::vector<double> residuals;
    for (const MessageSample& each : lost)
        residuals.push_back(each.one_way / (line.overhead + each.size / line.rate) - 1);
    const std::string where =
        source(samples, static_cast<std::int64_t>(lost.size()), bounded(robust_deviation(residuals)));
    return {{line.overhead, where}, {line.rate, where}, {Seconds{std::max(0.0, median(delays))}, where}};
}

Messaging messaging(const Samples& samples, const Messages& measured) {
    PieceFit fit = fit_pieces(measured.samples);
    const std::string over = measured.over.empty() ? "" : fmt::format(", {}", measured.over);
    const std::string where = source(fmt::format("{}, {}{}", samples.host, samples.date, over), fit.samples, fit.error);
    for (MessagePiece& piece : fit.pieces) piece.source = where;
    Messaging result;
    result.overhead = {fit.pieces.front().overhead, where};
    result.fraction = {1, where};
    result.reduce = sourced(samples, measured.reduce);
    result.error = bounded(fit.error);
    result.overlap = overlap(samples, measured.overlap);
    result.pieces = std::move(fit.pieces);
    return result;
}

void apply_messages(Machine& host, const Samples& samples) {
    host.inside = messaging(samples, *samples.messages);
    const Bandwidth reached = host.inside.pieces.back().rate;
    Bandwidth narrowest{std::numeric_limits<double>::infinity()};
    for (NodeKind& node : host.nodes) {
        apply_links(node, samples, {reached, host.inside.fraction.source});
        for (const NodeLink& link : node.links) narrowest = std::min(narrowest, link.bandwidth.value);
    }
    host.inside.fraction.value = std::min(1.0, reached / narrowest);
}

// What one message reaches is the link between nodes, wherever it is narrowest.
void apply_across(Machine& host, const Samples& samples) {
    host.across = messaging(samples, *samples.across);
    if (host.inside.fraction.source.empty()) {  // one rank a node: nothing is sent inside
        host.inside.overhead = {Seconds{0}, in_overhead};
        host.inside.fraction = {1, in_overhead};
        host.inside.reduce = host.across.reduce;
        for (NodeKind& node : host.nodes) apply_links(node, samples, {});
    }
    const Sourced<Bandwidth> reached{host.across.pieces.back().rate, host.across.fraction.source};
    if (is_ours(host.fabric.link.source)) host.fabric.link = reached;
    if (host.fabric.latency.source.empty()) host.fabric.latency = {Seconds{0}, in_overhead};
    host.across.fraction.value = std::min(1.0, reached.value / host.fabric.link.value);
}

void require_one_class(const Machine& machine) {
    if (machine.classes.size() == 1) return;
    throw InputError(fmt::format("machine '{}' has {} device classes: samples of one can be applied to one only",
                                 machine.name, machine.classes.size()));
}

// What a link carries at most stays; how much of it messages reach, and how long they take, is new.
void apply_file(Messaging& messaging, const FileSamples& samples, Bandwidth link) {
    PieceFit fit = fit_pieces(samples.messages);
    if (!fit.grows)
        throw InputError(fmt::format("{}: the time of messages does not grow with their size", samples.where));
    const std::string where = source(samples.where, fit.samples, fit.error);
    for (MessagePiece& piece : fit.pieces) piece.source = where;
    messaging.overhead = {fit.pieces.front().overhead, where};
    messaging.fraction = {std::min(1.0, fit.pieces.back().rate / link), where};
    messaging.error = bounded(fit.error);
    messaging.pieces = std::move(fit.pieces);
}

}  // namespace

Machine machine_of_one(const std::string& name, const std::string& description, Bytes memory) {
    Machine machine;
    machine.name = "this-" + name;
    machine.summary = description;
    machine.origin = "calibrate --device";
    DeviceClass found;
    found.name = name;
    found.memory = {memory, description + ", what was free"};
    machine.classes.push_back(std::move(found));
    machine.nodes.push_back({"host", 1, {{"device0", VertexKind::device, 0}}, {}});
    machine.fabric.topology = Star{};
    return machine;
}

Machine apply(Machine machine, const FileSamples& samples, Between between) {
    if (!samples.compute.empty()) require_one_class(machine);
    for (const Sample& sample : samples.compute) {
        machine.classes.front().measured[to_string(sample.problem)] = {
            sample.median, bounded(sample.error), sample.count,
            fmt::format("{} ({})", source(samples.where, sample.count, sample.error), sample.backend)};
    }
    if (samples.messages.empty()) return machine;
    if (between == Between::nodes) {
        if (node_count(machine) < 2)
            throw InputError(fmt::format("machine '{}' has one node: its messages are between devices", machine.name));
        apply_file(machine.across, samples, machine.fabric.link.value);
        return machine;
    }
    Bandwidth narrowest{std::numeric_limits<double>::infinity()};
    for (const NodeKind& node : machine.nodes) {
        for (const NodeLink& link : node.links) narrowest = std::min(narrowest, link.bandwidth.value);
    }
    apply_file(machine.inside, samples, narrowest);
    return machine;
}

Machine apply(Machine host, const Samples& samples) {
    require_one_class(host);
    apply_compute(host.classes.front(), samples);
    if (samples.messages) apply_messages(host, samples);
    if (samples.across) apply_across(host, samples);
    return host;
}

std::string doubt_of_messages(const Samples& samples) {
    const auto why = [](const std::optional<Messages>& messages) -> std::string {
        if (!messages) return "";
        const PieceFit fit = fit_pieces(messages->samples);
        if (!fit.grows) return "large messages took no longer than small ones";
        if (fit.error <= most_message_error) return "";
        return fmt::format("messages of one size took times that differ by {:.0f} %", 100 * fit.error);
    };
    std::string found = why(samples.messages);
    if (found.empty()) found = why(samples.across);
    if (found.empty()) return "";
    return fmt::format("{} on {} on {}, as on a host that is busy with other things: calibrate again when it is not",
                       found, samples.host, samples.date);
}

}  // namespace rehearse::calibrate
