// SPDX-License-Identifier: Apache-2.0
// What parameter servers of a timeline must have done. Included by this folder's sources only.
#pragma once

#include <map>
#include <span>
#include <utility>

#include "core/timeline.hpp"
#include "sim/network/wiring.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// How often ranks came to servers, by iteration and bucket.
using Trades = std::map<std::pair<int, int>, std::int64_t>;

/// Throws logic_error unless every trade has been served, for as long as that takes, and one server did one thing at a
/// time.
void certify_servers(std::span<const Event> events, const Steps& steps, const Wiring& wiring, const Trades& trades,
                     Seconds slack);

}  // namespace rehearse::sim
