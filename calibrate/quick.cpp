// SPDX-License-Identifier: Apache-2.0
#include "calibrate/quick.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/fit.hpp"
#include "calibrate/pieces.hpp"
#include "core/error.hpp"
#include "prices/host_model.hpp"
#include "prices/prices.hpp"

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

// The price of a kernel that no step had is no measurement in one.
std::string scaling(const Sample& sample) {
    constexpr double seen = 0.005;  // less is not in three digits
    return std::abs(sample.scaled - 1) < seen ? ""
                                              : fmt::format(", scaled from its time alone by {:.3g}", sample.scaled);
}

void apply_compute(DeviceClass& device, const Samples& samples) {
    device.peak[DataType::f32] = sourced(samples, samples.figures.peak);
    device.memory_bandwidth = sourced(samples, samples.figures.memory_bandwidth);
    device.launch = sourced(samples, samples.figures.launch);
    for (const Sample& sample : samples.compute) {
        device.measured[to_string(sample.problem)] = {
            sample.median, bounded(sample.error), sample.count,
            fmt::format("{} ({}){}", source(samples, sample.count, sample.error), sample.backend, scaling(sample))};
    }
    device.efficiencies.clear();
    for (EfficiencyFit& fit : fit_efficiencies(samples.compute, device)) {
        fit.row.source = source(samples, fit.samples, fit.row.error);
        device.efficiencies.push_back(std::move(fit.row));
    }
    device.model = host_model(device);
}

constexpr const char* in_overhead = "part of the measured overhead of a message";

// Of a price of which nothing is known.
constexpr double unknown_error = 0.5;

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

// One sample says nothing of its spread. It is taken from the file's other problems where three or more of them were
// repeated, and else for as large as that of the price that the machine had before.
double error_of(const Sample& sample, const std::vector<Sample>& all, const DeviceClass& before) {
    if (sample.count != 1) return sample.error;
    std::vector<double> spreads;
    for (const Sample& other : all) {
        if (other.count > 2) spreads.push_back(other.error);
    }
    constexpr std::size_t enough = 3;
    if (spreads.size() >= enough) return median(spreads);
    try {
        return price(sample.problem, before).error;
    } catch (const InputError&) {  // a device without figures
        return unknown_error;
    }
}

std::string in_doubt(const std::string& contradiction, const Samples& samples) {
    if (contradiction.empty()) return "";
    return fmt::format("{} on {} on {}, as on a host that is busy with other things: calibrate again when it is not",
                       contradiction, samples.host, samples.date);
}

std::string source_of(const std::string& where, const Sample& sample) {
    const std::string& place = sample.where.empty() ? where : sample.where;
    if (sample.count == 1) return fmt::format("measured, {}, 1 sample, its spread is not known", place);
    return source(place, sample.count, sample.error);
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

Machine apply(Machine machine, const FileSamples& samples) {
    if (samples.compute.empty()) return machine;
    require_one_class(machine);
    DeviceClass& device = machine.classes.front();
    const DeviceClass before = device;
    for (const Sample& sample : samples.compute) {
        device.measured[to_string(sample.problem)] = {
            sample.median, bounded(error_of(sample, samples.compute, before)), sample.count,
            fmt::format("{} ({})", source_of(samples.where, sample), sample.backend)};
    }
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
    return in_doubt(found, samples);
}

std::string doubt_of_steps(const Samples& samples, const std::vector<InSituStretch>& stretches) {
    return in_doubt(contradiction_of_steps(stretches), samples);
}

}  // namespace rehearse::calibrate
