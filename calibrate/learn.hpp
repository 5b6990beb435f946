// SPDX-License-Identifier: Apache-2.0
// Learns how far measured kernels speak for others: the lengths, amplitudes and noise of a covariance.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prices/price_model.hpp"

namespace rehearse::calibrate {

/// Where learning starts, and what it is drawn to where the data say nothing.
Covariance first_guess(Smoothness smoothness, std::size_t features);

/// The experts that docs/device_prices.md settled on, not yet learned.
/// Of a board: over the features of library_point.
std::vector<Expert> first_experts(std::string_view kind, const DeviceSheet& sheet = {});

/// Maximizes the sum over `sets` of the logarithm of the marginal likelihood (Rasmussen and Williams 2006, section
/// 5.4.1) times a wide log-normal prior around first_guess and, where given, around `kin`, a family with more data.
/// Resilient back-propagation (Riedmiller and Braun 1993) on the logarithms: deterministic. A round costs 2 n^3 a set.
Covariance learn(std::span<const TrainingSet> sets, const Covariance& start, const std::optional<Covariance>& kin = {},
                 int rounds = 300);

/// What learn minimizes, and its derivatives; for tests.
struct Objective {
    double value = 0;
    std::vector<double> gradient;
};
std::vector<double> parameters(const Covariance& model);
Covariance with_parameters(Covariance model, std::span<const double> parameters);
Objective objective(std::span<const TrainingSet> sets, const Covariance& model, const std::optional<Covariance>& kin);

/// A band is measured at shapes that were left out, but with lengths that had seen them. With lengths learned without a
/// tenth of the shapes it must be this much wider to hold 90 % of those (docs/device_prices.md).
double unseen_factor(std::string_view kind);

/// Experts of `sets` (one family, one kind) learned together, and the band that then holds 90 % of shapes left out.
struct Family {
    std::vector<Expert> experts;
    double band = 1;
};
Family learn_family(std::span<const MeasuredKernels> sets, const std::optional<Family>& kin = {}, int rounds = 300);

/// Kernels of a device and a type, and the family whose covariance they share; those that do not teach only use it.
struct FamilyMember {
    std::string family;
    bool teaches = true;
    MeasuredKernels kernels;
};
/// Every family and kind, in the order of `members`; the first family of a kind is the kin of the later ones.
void learn_all(std::span<FamilyMember> members);

}  // namespace rehearse::calibrate
