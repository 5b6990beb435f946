// SPDX-License-Identifier: Apache-2.0
#include "calibrate/collective_times.hpp"

namespace rehearse::calibrate {

std::optional<RingRounds> ring_rounds(std::string_view kind, std::int64_t ranks) {
    if (ranks < 2) return std::nullopt;
    const auto n = static_cast<double>(ranks);
    if (kind == "all_reduce") return RingRounds{2 * (n - 1), n};
    if (kind == "all_gather" || kind == "reduce_scatter" || kind == "all_to_all") return RingRounds{n - 1, n};
    // One rank's link carries n - 1 pieces, whoever's turn it is.
    if (kind == "gather" || kind == "scatter") return RingRounds{n - 1, n};
    if (kind == message_kind || kind == "broadcast" || kind == "reduce" || kind == "send_recv") return RingRounds{1, 1};
    return std::nullopt;
}

}  // namespace rehearse::calibrate
