// SPDX-License-Identifier: Apache-2.0
// Lists of problems that others time too, or that show something together.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/op.hpp"

namespace rehearse::bench {

struct Suite {
    std::string_view name, summary;
    std::vector<Problem> (*problems)();
};
std::span<const Suite> suites();
/// Null when no suite has that name.
const Suite* find_suite(std::string_view name);

/// "deepbench-train": Baidu DeepBench, its training convolutions in three passes each, and its training products. A
/// product C (M x N) = A (M x K) B (K x N), stored columns first, is a pass of a dense layer, stored rows first: with
/// neither transposed the forward pass of N samples from K to M features; with A transposed its backward_data, from M
/// to K features; with B transposed its backward_weights, of K samples from N to M features. DeepBench adds to C; these
/// overwrite it.
std::vector<Problem> deepbench_train();

/// "crossover": forward convolutions of stride 1 that keep the plane's size, filters of 1x1 to 21x21 over planes and
/// channels that shrink and grow as in networks: where each algorithm begins to win.
std::vector<Problem> crossover();

}  // namespace rehearse::bench
