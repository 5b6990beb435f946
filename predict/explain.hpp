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
    std::string what;  // "conv2d forward", "allreduce ring"
    int steps = 0;
    Seconds total;
    double share = 0;  // of the step; overlapped communication makes the shares sum to more than one
    double error = 0;  // relative, one standard deviation
    Basis basis = Basis::modelled;
    std::string source;
};
/// The longest first.
std::vector<Explained> explained(const Prediction& prediction);

}  // namespace rehearse::predict
