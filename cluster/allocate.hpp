// SPDX-License-Identifier: Apache-2.0
// Who gets how many devices, so that the sum of what they are worth is largest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/speeds.hpp"

namespace rehearse::cluster {

/// Of a job: worth[k] is what k devices are worth to it; less than 0: it cannot have k. worth[0] is of having none.
using Worth = std::vector<double>;

/// Devices of each job, at most `devices` in all, with the largest sum of worths. Dynamic programming over jobs and
/// devices (Saxena et al. 2020): P(j, k) = max over m of P(j - 1, k - m) + worth_j(m), O(jobs x devices x most a job).
/// Of equal sums the one that gives the last job least. Empty when not all jobs can have what they need.
std::vector<std::int64_t> allocate(std::span<const Worth> jobs, std::int64_t devices);

/// A job at a decision.
struct Candidate {
    std::span<const Share> shares;  // by devices: what it would make of them; of none, nothing
    double one_device = 1;          // samples a second of one device at its best
    Share has;                      // what it runs with now; no devices: it waits
};

/// What each gets. As many of the first ones as can all have what they need at least take part, the rest gets nothing;
/// devices go where the sum of scaling factors (throughput / one_device) is largest; of equals, a job keeps what it
/// has.
std::vector<Share> elastic_shares(std::span<const Candidate> candidates, std::int64_t devices);

}  // namespace rehearse::cluster
