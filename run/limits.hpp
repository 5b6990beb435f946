// SPDX-License-Identifier: Apache-2.0
// What can be predicted and this version does not execute: one table, each row with its reason.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/schedule.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// What is asked to be trained, and how. `device` is "cpu" where there is none.
struct Asked {
    const Schedule& schedule;
    const Options& options;
    std::string_view device;
};

struct Limit {
    std::string_view what, why;
    /// Names what of it was asked for, as the user wrote it; empty: nothing.
    std::string (*found)(const Asked& asked);
    /// Whether not even one rank's program can be made, so that its computation cannot be timed either.
    bool of_program = false;
};

/// All of them, in the order in which they are looked for.
std::span<const Limit> limits();
/// The first that holds, or null; of those of_program alone where `program`.
const Limit* first_limit(const Asked& asked, bool program = false);

// The rows, by what they look at.
std::span<const Limit> limits_of_programs();  // networks, precisions and steps
std::span<const Limit> limits_of_plans();     // methods of training beside each other, and options
std::span<const Limit> limits_of_threads();   // learners, threads without locks
std::span<const Limit> limits_of_devices();   // what is kept or turned on the host

}  // namespace rehearse::run
