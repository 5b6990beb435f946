// SPDX-License-Identifier: Apache-2.0
// Where a predicted time comes from: what takes it, at which price, with which error, from which source.
#pragma once

#include <string>
#include <vector>

#include "predict/prediction.hpp"
#include "prices/prices.hpp"

namespace rehearse::predict {

/// All steps of a kind of the largest point's first rank whose prices have the same basis.
struct Explained {
    std::string what;  // "conv2d forward", "allreduce ring", "push to and pull from servers"
    int steps = 0;
    Seconds total;
    double share = 0;  // of the step; overlapped communication makes the shares sum to more than one
    double error = 0;  // relative, one standard deviation
    Basis basis = Basis::modelled;
    std::string source;
};
/// Returns them, the longest first. Computation beyond its prices, because a step waits for the slowest of its cards,
/// is a row.
std::vector<Explained> explained(const Prediction& prediction);

/// What makes the largest point's band wide.
struct BandPart {
    std::string what;
    double factor = 1;   // the step is so much longer or shorter, nine times in ten, by this alone
    std::string source;  // where that is known from
};
/// Returns them, the widest first; what adds nothing is left out.
std::vector<BandPart> band_parts(const Prediction& prediction);

}  // namespace rehearse::predict
