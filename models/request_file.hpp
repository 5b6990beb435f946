// SPDX-License-Identifier: Apache-2.0
// A request for machine time as a file: what `rehearse report` makes an application of. docs/report.md has its keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace rehearse::models {

/// A scaling study: batches that grow with the devices (weak) or stay (strong).
struct ScalingRequest {
    std::vector<std::int64_t> nodes;
    std::int64_t batch = 0;             // weak: of one copy of the network; strong: of all devices together
    std::vector<std::string> pilots{};  // steps that were measured with that batch, as predict --pilot takes them
};

/// Jobs of one kind. Of `epochs`, `steps` and `wall` exactly one is given.
struct PhaseRequest {
    std::string name, period;
    std::int64_t runs = 1, nodes = 1;
    std::optional<double> epochs;
    std::optional<std::int64_t> steps;
    std::optional<Seconds> wall;
    bool strong = false;  // with the batch of the strong study
};

/// Empty, 0 or absent: the file does not say.
/// Large: one member a key of the file.
struct RequestFile {
    std::string title, applicant, project;
    std::string model, machine, plan, precision, optimizer, framework;
    double floor = 0.7;  // of efficiency
    std::optional<ScalingRequest> weak, strong;
    std::optional<std::int64_t> dataset, checkpoint_every, checkpoints_kept;
    int epochs = 1;
    std::string sample, input, checkpoint;
    std::vector<PhaseRequest> phases;
};

/// A model or machine that is a file beside `path` gets its folder. InputError with file:line for what is no TOML, an
/// unknown key, a value of another type, a study without nodes, a phase that says its length twice or not at all.
RequestFile load_request(const std::string& path);

}  // namespace rehearse::models
