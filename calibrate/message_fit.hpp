// SPDX-License-Identifier: Apache-2.0
// Puts measured messages and collectives into a machine so that its simulation gives these times back.
#pragma once

#include <string>
#include <vector>

#include "calibrate/message_places.hpp"
#include "calibrate/read_samples.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

/// Returns `machine` with the overhead, the fraction and the pieces of its messages between devices or nodes such that
/// `time` gives back the collectives of `samples`: links, latencies, rings over several links and network cards, and
/// what the other kind of messages adds are in `time` already and are taken out. Sums of all-reduces and
/// reduce-scatters are counted as a part of the messages that bring them (`reduce`). Of all-reduces that the machine
/// leaves to switches, the rate and the latency of these are fitted instead, and the messages' error stays. What links
/// carry stays as it is, and what the sizes do not tell: the rate and the pieces of larger messages with the time of
/// sums, or the overhead and the pieces of smaller ones; then the error is no less than it was. InputError where the
/// ranks do not fit the machine, no such message is in their time, times do not grow with sizes, or links carry less
/// than was measured.
Machine with_messages(Machine machine, const FileSamples& samples, Between between, const CollectiveTime& time);

/// Says which figures of messages or of switches with_messages() kept of `before`, as the sizes that were measured do
/// not tell them; empty where it kept none.
std::string kept(const Machine& before, const Machine& fitted, Between between);

/// Returns what `time` predicts of `row` as its test shows it: of messages of which many were in flight without what
/// one takes that has no bytes.
Seconds shown_by(const Machine& machine, const CollectiveRow& row, const CollectiveTime& time);

/// What was measured and what is predicted of it.
struct RoundTrip {
    CollectiveRow row;
    Seconds predicted;
    double error() const { return predicted / row.time - 1; }
};

/// Says of which collectives the machine's prediction is further off than a tenth, and by how much at worst; empty
/// where it is of none.
std::string not_met(const std::vector<RoundTrip>& trips);

}  // namespace rehearse::calibrate
