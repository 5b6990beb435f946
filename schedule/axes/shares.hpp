// SPDX-License-Identifier: Apache-2.0
// Uneven batches: how many samples each copy of the network works on, where copies are on unlike devices (Jia et al.
// 2022, "Whale", balance theirs by peak rates; here by prices).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace rehearse::schedule {

/// Copies of the network on alike devices.
struct AlikeCopies {
    std::int64_t copies = 1;
    std::function<double(std::int64_t samples)> seconds;  // that a step of each takes; does not fall with the samples
    std::function<bool(std::int64_t samples)> fits;       // in their memory; does not become true with more samples
};

/// Samples of each copy, kind after kind, in multiples of `unit`, `batch` of them together: the slowest copy takes the
/// least possible time (exact, by bisection) and none has more than fits. Copies of a kind differ by one unit at most.
/// Where the batch fits in no way, as if there were no limit of memory. InputError when there are fewer units than
/// copies, or the batch is not a multiple of `unit`.
std::vector<std::int64_t> balance_batch(std::span<const AlikeCopies> kinds, std::int64_t batch, std::int64_t unit);

/// `batch` in these proportions, each share a multiple of `unit`. InputError, with the batches that would do.
std::vector<std::int64_t> cut_batch(std::span<const std::int64_t> parts, std::int64_t batch, std::int64_t unit);

}  // namespace rehearse::schedule
