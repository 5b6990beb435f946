// SPDX-License-Identifier: Apache-2.0
#include "prices/family_vote.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "core/error.hpp"

namespace rehearse {

namespace {

// Of a vote: libraries choose by measuring, and near a border either may win.
constexpr double vote_noise = 0.25;

}  // namespace

FamilyVote::FamilyVote(Covariance model, std::span<const RanFamily> ran) : model_(std::move(model)) {
    require(!ran.empty(), "a vote needs a kernel that ran");
    model_.noise = vote_noise;
    std::map<std::size_t, std::vector<double>> ones;  // by family
    for (const RanFamily& kernel : ran) {
        points_.push_back(kernel.point);
        ones.try_emplace(kernel.family, ran.size());
    }
    for (std::size_t i = 0; i < ran.size(); ++i) ones.at(ran[i].family)[i] = 1;
    const Matrix factor = cholesky(covariances(model_, points_));
    for (auto& [family, values] : ones) candidates_.push_back({family, solve(factor, std::move(values))});
}

std::size_t FamilyVote::at(const FeaturePoint& point) const {
    std::vector<double> votes(candidates_.size());
    for (std::size_t i = 0; i < points_.size(); ++i) {
        const double alike = covariance(model_, point, points_[i]);
        for (std::size_t c = 0; c < candidates_.size(); ++c) votes[c] += alike * candidates_[c].weights[i];
    }
    std::size_t best = 0;
    for (std::size_t c = 1; c < votes.size(); ++c) {
        if (votes[c] > votes[best]) best = c;
    }
    return candidates_[best].family;
}

}  // namespace rehearse
