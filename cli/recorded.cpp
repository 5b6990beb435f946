// SPDX-License-Identifier: Apache-2.0
#include "cli/recorded.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "calibrate/quick.hpp"
#include "calibrate/recorded_timeline.hpp"
#include "cli/job.hpp"
#include "core/error.hpp"
#include "schedule/plan.hpp"
#include "trace/compare.hpp"
#include "trace/recording.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

// Samples that the predicted operations are of.
std::optional<std::int64_t> batch_of(const Timeline& predicted, const Network& network) {
    for (const Event& event : predicted.events) {
        if (event.pass != "forward" || !(event.flops > Flops{})) continue;
        const std::optional<int> layer = find_layer(network, event.layer);
        if (!layer) continue;
        const Flops one = flops(network.layers[at(*layer)].op, Pass::forward, 1);
        const double batch = event.flops / one;
        if (one > Flops{} && std::abs(batch - std::round(batch)) < 1e-6 * batch) return std::llround(batch);
    }
    return std::nullopt;
}

// What a prediction's title calls a network of a file is its file's name alone.
Network network_named(const std::string& name, const std::string& path, bool by_title) {
    try {
        return load_network(name, default_fuse);
    } catch (const InputError&) {
        if (!by_title) throw;
        throw InputError(
            fmt::format("{}: a profiler's trace: give the --model that it is of, as FILE.onnx; '{}', which "
                        "the prediction's title says, is no network by name",
                        path, name));
    }
}

}  // namespace

Schedule recorded_schedule(const Network& network, std::int64_t batch, Precision precision, Optimizer optimizer) {
    const Machine one = calibrate::machine_of_one("device", "one device", Bytes{1e18});
    schedule::Job job{.devices = 1, .batch_per_device = batch};
    job.precision = precision;
    job.optimizer = optimizer;
    return schedule::make_schedule(network, one, schedule::parse_plan("data"), job);
}

Timeline read_any(const std::string& path) {
    try {
        return trace::read(path);
    } catch (const trace::OtherProgram&) {
        return trace::timeline_of(trace::read_recording(path));
    }
}

Measured read_measured(const std::string& path, const Timeline& predicted, const std::string& model,
                       std::optional<std::int64_t> batch) {
    try {
        return {trace::read(path), {}};
    } catch (const trace::OtherProgram&) {
    }
    const std::string name{model.empty() ? trace::network_of(predicted) : model};
    if (name.empty()) {
        throw InputError(
            fmt::format("{}: a profiler's trace: give the --model that it is of; the prediction's title, "
                        "'{}', does not say it",
                        path, predicted.title));
    }
    const Network network = network_named(name, path, model.empty());
    if (!batch) batch = batch_of(predicted, network);
    if (!batch || *batch < 1) {
        throw InputError(
            fmt::format("{}: a profiler's trace: give its --batch, the samples of a step on one rank", path));
    }
    const Recording recording = trace::read_recording(path);
    const Schedule schedule = recorded_schedule(network, *batch, Precision::fp32, Optimizer::sgd);
    calibrate::MatchedRecording found =
        calibrate::matched({&recording, 1}, schedule, calibrate::named_steps(predicted));
    Measured measured{std::move(found.timeline), {}};
    if (!found.by_shape) measured.warnings.emplace_back(without_shapes);
    return measured;
}

}  // namespace rehearse::cli
