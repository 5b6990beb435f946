// SPDX-License-Identifier: Apache-2.0
// What a training process that reads its own samples does with them before each step.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::sim {

/// A training process that makes its own batches (PyTorch's DataLoader with num_workers = 0, its default, and without
/// pinned memory): one core copies sample after sample into memory that is new for each batch, and then the batch to
/// the device. Both rates are a process's by itself.
struct Loader {
    /// 77 MB, 128 samples, into a new mapping of 2 MiB pages by one core of an AMD EPYC (Zen 4): 12 to 14 ms, medians
    /// of 15, five times (scripts/stack_rate.cpp; docs/input.md says what 4 KiB pages do). 0: they are stacked.
    Bandwidth stack{6e9};
    /// To the device; absent: `pageable` of the narrowest link on its route from the processor, and nothing to a
    /// processor (DeviceClass::host), which computes where the batch lies.
    std::optional<Bandwidth> copy{};
    bool reads_ahead = false;  // samples come from their tier a step ahead, by another thread; only copies are inline
};
/// "ahead" or nothing: samples come a step ahead, by others; "inline", "inline:stack=RATE:copy=RATE" (or off), with
/// "read=ahead" where only the copies are inline.
/// InputError for a text that says neither.
std::optional<Loader> parse_loader(const std::string& text);

/// Of six bandwidthTests of pageable memory that others published, host to device, over the rate of the link: 0.10,
/// 0.24 (GTX 1080 Ti), 0.32 and 0.45 (A100), 0.35 (P100 by NVLink), 0.58 (K80), the middle (docs/input.md).
inline constexpr double pageable = 0.33;
/// Names of the tiers through which a batch goes.
inline constexpr std::string_view stacking = "stacking", to_device = "to-device";
/// Which of both there are for a job on so many devices.
std::vector<std::string> loader_tiers(const Machine& machine, const Loader& loader, std::int64_t devices);
/// Adds them to the machine, for a schedule with Loads from them (schedule::add_inline_input). Links that several
/// processes of a node use at once they share; memory of the host is taken to be fast enough for all.
Machine with_loader(Machine machine, const Loader& loader, const Schedule& schedule);

}  // namespace rehearse::sim
