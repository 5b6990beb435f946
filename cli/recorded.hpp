// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler where a timeline is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/network.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse::cli {

/// What every rank of data parallelism computes, on one device: the steps that calls of a recording are held against.
Schedule recorded_schedule(const Network& network, std::int64_t batch, Precision precision, Optimizer optimizer);

/// A timeline of ours, or what a profiler recorded, by the names that the framework has.
Timeline read_any(const std::string& path);

/// What a profile that has no shapes leaves open.
inline constexpr std::string_view without_shapes =
    "the profile has no shapes (record_shapes=True): operators were matched by order and kind alone, and nothing says "
    "that the network and the batch are those of the profile";

struct Measured {
    Timeline timeline;
    std::vector<std::string> warnings;
};
/// A timeline of ours, or what a profiler recorded, by the names of `predicted`'s steps. The network is by default that
/// of the prediction's title, the batch that of its operations. InputError where these are not known.
Measured read_measured(const std::string& path, const Timeline& predicted, const std::string& model,
                       std::optional<std::int64_t> batch);

}  // namespace rehearse::cli
