// SPDX-License-Identifier: Apache-2.0
// K-FAC (Martens and Grosse 2015; over ranks: Osawa et al. 2019): gradients are multiplied with the inverses of two
// factors of each layer, which the ranks sum, and each inverts for the layers that it owns.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "run/methods/method.hpp"

namespace rehearse::run {

/// Factors made, summed and inverted, and directions made and handed on.
class CurvatureMethod : public Method {
public:
    explicit CurvatureMethod(RankContext& rank) : rank_(rank) {}
    bool prepare(ReadyStep& ready) override;

private:
    using Side = Precondition::Side;
    using OfSide = std::map<std::pair<int, Side>, std::vector<float>>;  // by bucket

    void prepare_factor(ReadyStep& ready, const Precondition& step);
    void prepare_owned(ReadyStep& ready, const Precondition& step);
    kernels::ConstView rows_of(ReadyStep& ready, const Precondition& step);
    std::span<float> factor(int bucket, Side side);
    std::vector<float>& inverse(int bucket, Side side);
    std::function<void()> inversion(int bucket, Side side);
    std::function<void()> direction(int bucket, Side side);

    RankContext& rank_;
    std::map<int, std::vector<float>> factors_;   // by bucket: both, packed
    std::map<int, std::vector<float>> between_;   // half of what the inverses make
    std::map<int, std::vector<float>> matrices_;  // gradients of convolutions, as those of dense layers
    OfSide sums_, inverses_;                      // sums: of products of rows
    OfSide rows_;                                 // of convolutions: what products are of
};

}  // namespace rehearse::run
