// SPDX-License-Identifier: Apache-2.0
#include "report/prediction_json.hpp"

#include <fmt/format.h>

namespace rehearse::report {

namespace {

using Json = nlohmann::ordered_json;

void add_noise(Json& json, const predict::NoisyStep& noisy) {
    json["noise"] = noisy.sigma;
    json["noise_samples"] = noisy.samples;
    json["noisy_step_s"] = noisy.mean.value;
    json["noisy_p05_s"] = noisy.p05.value;
    json["noisy_p95_s"] = noisy.p95.value;
    json["noisy_samples_per_s"] = noisy.samples_per_s;
}

void add_input(Json& json, const predict::Input& input) {
    json["input_bytes_per_s"] = input.rate.value;
    if (input.bound_devices) json["io_bound_devices"] = *input.bound_devices;
    if (input.cached_share) {
        json["data_servers"] = input.data_servers;
        json["cached_share"] = *input.cached_share;
    }
    if (!input.staging) return;
    json["staging_s"] = input.staging->time().value;
    json["staging_read_s"] = input.staging->read.value;
    json["staging_received_s"] = input.staging->received.value;
    json["staging_write_s"] = input.staging->written.value;
}

void add_checkpoints(Json& json, const predict::Checkpoints& checkpoints) {
    json["checkpoint_bytes"] = checkpoints.written.size.value;
    json["checkpoint_nodes"] = checkpoints.written.writers;
    json["checkpoint_s"] = checkpoints.written.time.value;
    json["checkpoint_share"] = checkpoints.share;
}

}  // namespace

std::string basis_of(const predict::Point& point) {
    if (point.measured) return "measured";
    if (!point.anchor) return "cold";
    return fmt::format("anchored on {} device{}", point.anchor->devices, point.anchor->devices == 1 ? "" : "s");
}

Json json_of(const predict::Explained& part) {
    return {{"what", part.what},    {"steps", part.steps}, {"total_s", part.total.value},
            {"share", part.share},  {"error", part.error}, {"basis", to_string(part.basis)},
            {"source", part.source}};
}

Json json_of(const predict::Point& point) {
    Json json = json_of(point.figures);
    if (point.utilization) json["utilization"] = *point.utilization;
    json["nodes"] = point.nodes;
    json["mode"] = to_string(point.mode);
    json["step_low_s"] = point.band.low.value;
    json["step_high_s"] = point.band.high.value;
    json["basis"] = basis_of(point);
    if (point.anchor) {
        json["pilot_scale"] = point.anchor->computation;
        json["pilot_messages"] = point.anchor->messages;
    }
    if (point.measured) json["measured_step_s"] = point.measured->value;
    json["memory_capacity_bytes"] = point.memory.capacity.value;
    json["fits"] = point.memory.fits;
    if (point.guessed > 0) json["guessed_share"] = point.guessed;
    json["flows_simulated"] = point.flows;
    json["least_compute_s"] = point.bounds.compute.value;
    json["least_wire_s"] = point.bounds.wire.value;
    if (point.staleness) add_staleness(json, *point.staleness);
    if (point.through) {
        json["quorum_through_s"] = point.through->quorum.value;
        json["all_through_s"] = point.through->all.value;
    }
    if (point.noisy) add_noise(json, *point.noisy);
    if (point.input) add_input(json, *point.input);
    if (point.checkpoints) add_checkpoints(json, *point.checkpoints);
    json["simulation_wall_s"] = point.wall.value;
    json["speedup"] = point.speedup ? Json(*point.speedup) : Json();
    json["efficiency"] = point.efficiency ? Json(*point.efficiency) : Json();
    add_training_time(json, point.training);
    return json;
}

void add_training_time(Json& row, const std::optional<predict::TrainingTime>& training) {
    if (!training) return;
    row["epoch_s"] = training->epoch.value;
    row["epochs"] = training->epochs;
    row["training_s"] = training->all.value;
    row["node_hours"] = training->node_hours;
}

}  // namespace rehearse::report
