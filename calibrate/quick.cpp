// SPDX-License-Identifier: Apache-2.0
#include "calibrate/quick.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/fit.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

std::string source(const Samples& samples, std::int64_t count, double error) {
    return fmt::format("measured, {}, {}, {} {}, residual {:.1f} %", samples.host, samples.date, count,
                       count == 1 ? "sample" : "samples", 100 * error);
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
            sample.median, sample.error, sample.count,
            fmt::format("{} ({})", source(samples, sample.count, sample.error), sample.backend)};
    }
    device.efficiencies.clear();
    for (EfficiencyFit& fit : fit_efficiencies(samples.compute, device)) {
        fit.row.source = source(samples, fit.samples, fit.row.error);
        device.efficiencies.push_back(std::move(fit.row));
    }
}

// Links between cores are memory: they carry what one core copies through it. A figure from a data sheet stays.
void apply_links(NodeKind& node, const Samples& samples) {
    for (NodeLink& link : node.links) {
        if (link.bandwidth.source.empty() || link.bandwidth.source.starts_with("measured")) {
            link.bandwidth = sourced(samples, samples.figures.memory_bandwidth);
        }
        if (link.latency.source.empty()) link.latency = {Seconds{0}, "part of the measured overhead of a message"};
    }
}

void apply_messages(Machine& host, const Samples& samples) {
    const MessageFit fit = fit_messages(samples.messages->samples);
    const std::string where = source(samples, fit.samples, fit.error);
    Bandwidth narrowest = samples.figures.memory_bandwidth.median;
    for (NodeKind& node : host.nodes) {
        apply_links(node, samples);
        for (const NodeLink& link : node.links) narrowest = std::min(narrowest, link.bandwidth.value);
    }
    host.inside.overhead = {fit.overhead, where};
    host.inside.fraction = {std::min(1.0, fit.bandwidth / narrowest), where};
    host.inside.reduce = sourced(samples, samples.messages->reduce);
    host.inside.error = fit.error;
}

}  // namespace

Machine apply(Machine host, const Samples& samples) {
    if (host.classes.size() != 1) {
        throw InputError(fmt::format("machine '{}' has {} device classes: samples of one can be applied to one only",
                                     host.name, host.classes.size()));
    }
    apply_compute(host.classes.front(), samples);
    if (samples.messages) apply_messages(host, samples);
    return host;
}

}  // namespace rehearse::calibrate
