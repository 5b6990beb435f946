// SPDX-License-Identifier: Apache-2.0
// What a search by gradients (core/methods/bilevel.hpp) has found.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::run {

/// The operators of a sum of operators with trained shares.
struct MixedOperators {
    std::string layer;  // that makes the sum
    std::vector<std::string> operators;
    std::vector<double> shares;  // of these; they add up to less than 1 where one operator adds nothing
};

/// Returns the mixed operators of a network, in its order; of those that share one row of shares the first. They are
/// products of a row of a SoftmaxAlong of a Parameter with outputs that lie in one tensor, row by row
/// (models/zoo/darts). `weights` are a rank's, of all buckets of its part one after the other, as run::Result has them.
std::vector<MixedOperators> mixed_operators(const RankClass& rank_class, std::span<const float> weights);

}  // namespace rehearse::run
