// SPDX-License-Identifier: Apache-2.0
// The flat all-reduce algorithms, each a few pure functions of the number of ranks. core/collective.hpp combines them.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/collective.hpp"

namespace rehearse {

struct Range {
    std::int64_t begin = 0, end = 0;
};

/// Receives the transfers of one round.
using Sink = std::function<void(const Transfer&)>;

/// An all-reduce over n ranks: first `reduce_rounds(n)` rounds that leave the sum of `owned` at each rank, then the
/// mirror image that spreads it. An algorithm without halves (doubling) has reduce_rounds nullptr.
struct Pattern {
    std::string_view name, summary;
    std::int64_t (*rounds)(std::int64_t n);
    std::int64_t (*reduce_rounds)(std::int64_t n);
    void (*transfers)(std::int64_t n, Range whole, std::int64_t round, const Sink& add);
    Range (*owned)(std::int64_t n, Range whole, std::int64_t rank);
    bool alike;  // all reduce rounds are alike, and all others
};

std::span<const Pattern> flat_patterns();

}  // namespace rehearse
