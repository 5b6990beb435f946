// SPDX-License-Identifier: Apache-2.0
// Adaptive routing in places that are joined all to all, as a fluid: what messages that are under way together leave of
// the links for each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::sim {

/// Into so many pieces exact mode cuts a message whose ways switches choose: each takes one of its own.
inline constexpr std::int64_t message_pieces = 64;

/// So many messages from one place to another.
struct PairDemand {
    std::int64_t from = 0, to = 0;
    double amount = 0;
};

/// Among `size` places, every two of them joined by one link each way: for each demand, how many messages the busiest
/// link carries of those that it uses. Of a pair's messages no more than a threshold go by the link between its ends;
/// what is over goes by way of all other places, evenly, over two links each. The threshold is the one at which the
/// busiest link carries least. `out` and `in`: what every link from and to a place carries beside these messages;
/// empty: nothing. Where all places send n messages to one other each, that is 2 n / size; where two of them do, n /
/// (size - 1). Where a part of the places send among themselves, the best would prefer third places that do not: this
/// takes up to half as long again.
std::vector<double> busiest_links(std::int64_t size, std::span<const PairDemand> demands,
                                  std::span<const double> out = {}, std::span<const double> in = {});

}  // namespace rehearse::sim
