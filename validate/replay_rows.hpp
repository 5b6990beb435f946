// SPDX-License-Identifier: Apache-2.0
// Published rows held to two predictions each: cold, from device prices and machine files alone; and anchored, with
// computation scaled so that the smallest run of the same kind in the same table is met.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "validate/replay.hpp"

namespace rehearse::validate {

struct Answer {
    double predicted = 0, low = 0, high = 0;  // in the row's unit; the band should hold 90 %
};

struct ReplayedRow {
    PublishedRow row;
    ReplaySettings settings;
    std::optional<Answer> cold, anchored;
    std::optional<Answer> twice;  // anchored on a second pilot, too, on more nodes than the first
    std::string anchor;           // id of the row it is anchored on
    std::string second;           // ... and of the second
    std::string skipped;          // why there is no answer
    bool from_memory = false;
    bool answered() const { return cold || anchored; }
};
/// (predicted - published) / published: above 0 where too much was predicted.
double error_of(const Answer& answer, double published);

/// Pilots that rows are anchored on: the smallest run of the same kind; or, of rows that have both, one on more nodes,
/// too.
enum class Pilots { one = 1, two = 2 };

/// Which predictions of a row are made; each costs its simulations.
enum class Predictions { both, cold, anchored };

/// `all` are the rows that anchors are looked for among; only those that `wanted` says are answered, and of these the
/// first ones where `progress` ends the work.
std::vector<ReplayedRow> replay_rows(std::vector<PublishedRow> all, const ReplayRules& rules,
                                     const std::function<bool(const PublishedRow&)>& wanted,
                                     const Progress& progress = {}, Pilots pilots = Pilots::one,
                                     Predictions predictions = Predictions::both);

}  // namespace rehearse::validate
