// SPDX-License-Identifier: Apache-2.0
// What a prediction and a measurement have in common.
#include "report/prediction_json.hpp"

namespace rehearse::report {

using Json = nlohmann::ordered_json;

Json json_of(const StepFigures& figures) {
    Json json{{"devices", figures.devices},
              {"global_batch", figures.global_batch},
              {"step_s", figures.time.step.value},
              {"samples_per_s", figures.samples_per_s()},
              {"flops_per_s", figures.flops_per_s().value},
              {"compute_s", figures.time.compute.value},
              {"exposed_comm_s", figures.time.exposed_comm.value},
              {"bubble_s", figures.time.bubble.value},
              {"io_wait_s", figures.time.io_wait.value},
              {"rest_s", figures.time.rest.value},
              {"memory_peak_bytes", figures.memory.value}};
    if (figures.counted < 1) json["counted_share"] = figures.counted;
    return json;
}

void add_staleness(Json& row, const Staleness& staleness) {
    row["staleness"] = staleness.updates;
    row["mean_staleness"] = staleness.mean();
    row["most_staleness"] = staleness.most();
}

}  // namespace rehearse::report
