// SPDX-License-Identifier: Apache-2.0
// Prices of a network's layers, and points of messages, out of recordings of its training.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/read_samples.hpp"
#include "calibrate/recorded_timeline.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

/// What the steps' problems took. All are stretched alike so that they add up to what a step computes (InSituSteps):
/// what no layer was found for, and the time between operators, then is in them. Layers that no call was found for are
/// among them, with the price that the device had for them or for their problem's other layers: what they took is in
/// the step already. InputError where the device has no
/// figures that sums of gradients could be told from kernels by.
std::vector<Sample> prices_of(const MatchedRecording& recording, const Schedule& schedule, const DeviceClass& device);

/// By how much prices are stretched.
double stretch_of(const MatchedRecording& recording, const Schedule& schedule, const DeviceClass& device);

/// `machine` with these prices as measured, with the share of the roofline that the optimizer reached, for buckets of
/// other sizes, and with the steps' spread (0: of too few steps). InputError where it has several device classes.
Machine with_prices(Machine machine, const std::vector<Sample>& prices, double spread, const std::string& where);

/// A size of collective on which one was recorded; the shortest over steps, of each the shortest over ranks: who comes
/// last does not wait.
struct RecordedMessage {
    std::string kind;
    Bytes bytes{};
    std::int64_t ranks = 0, hosts = 0, count = 0;  // hosts 0: the recordings do not tell which ranks they were
    Seconds time{};                                // of the collective
    Bandwidth algorithm{}, bus{};  // bytes / time, and what each link must have carried at least (nccl-tests' busbw)
    std::vector<MessageSample> samples;  // as messages of a ring
};
/// Ranks fill nodes of so many devices, in their order, as those of a prediction do.
std::vector<RecordedMessage> messages_of(std::span<const Recording> recordings, std::int64_t devices_per_node);

}  // namespace rehearse::calibrate
