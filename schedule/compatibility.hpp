// SPDX-License-Identifier: Apache-2.0
// What of a plan goes with what, and if not, why: one table, made of the features of all axes and methods.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/plan_words.hpp"

namespace rehearse::schedule {

/// In the order of the table. Their names are unique.
const std::vector<const Feature*>& features();

/// A feature that is asked for and a conflict of it with another one that is asked for, too.
struct Clash {
    const Feature* feature = nullptr;
    const Conflict* conflict = nullptr;
};
/// "kfac does not go with tensor: factors are of whole layers (not in this version); leave out one".
std::string to_string(const Clash& clash);

/// The first that can never be in the order of the table, else the first; nothing where all goes together.
std::optional<Clash> clash_of(const Asked& asked);

/// InputError with what of a plan, as it was read, is missing or does not go together.
void check_plan(const Plan& plan);
/// InputError with what of a job does not go with a plan that parse_plan has completed.
void check_job(const Plan& plan, const Job& job);

/// The shortest plan that has two features and what these need: both examples in one. Nothing where an option would
/// have two values.
std::optional<std::string> example_of(const Feature& a, const Feature& b);

/// What `--plan help` shows below the words: a row and a column a feature, and the reasons.
std::string compatibility_text();

}  // namespace rehearse::schedule
