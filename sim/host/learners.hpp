// SPDX-License-Identifier: Apache-2.0
// Learners of one device that are not equally fast, and who of them takes which part of its batch.
#pragma once

#include <span>

namespace rehearse::sim {

/// How many times as long a device computes in a step as it would if all of its learners were as fast as priced.
/// Learner i takes paces[i] times as long for a part; there are `each` times as many parts as learners. `first_idle`:
/// the next part goes to who is idle first, and of several to the first of them (Crossbow's task scheduler, Koliousis
/// et al. 2019); else each learner takes `each` parts. The step ends when all are through. InputError: a pace below 1.
double pace_of_learners(std::span<const double> paces, int each, bool first_idle);

}  // namespace rehearse::sim
