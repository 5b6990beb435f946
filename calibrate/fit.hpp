// SPDX-License-Identifier: Apache-2.0
// Robust fits: one sample that was disturbed by another process must not move a price.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/samples.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

double median(std::vector<double> values);
/// Standard deviation as 1.4826 times the median distance from the median (exact for a normal distribution).
double robust_deviation(const std::vector<double>& values);
/// The standard deviation of the normal distribution whose 90 % band holds one more value as surely as nine in ten of
/// these distances from the middle do: split conformal prediction (Vovk, Gammerman and Shafer 2005), the distance of
/// rank ceil(0.9 (n + 1)). 0 for fewer than nine distances, which do not say.
double conformal_deviation(std::vector<double> distances);
/// The widest relative error that a machine file holds, 1000 %: a fit beyond it says nothing.
inline constexpr double widest_error = 10;

/// The share of a roofline that a machine file holds in place of `share`: less than `share_limit`. Where somebody else had
/// the memory while its bandwidth was measured, and not while the kernels were, shares of 19 come out.
double bounded_share(double share);

struct EfficiencyFit {
    Efficiency row;  // without source
    std::int64_t samples = 0;
};

/// The share of `device`'s roofline that the samples reach: a row "*", a row a kind, and a row a kind and pass. Each is
/// the median share, its error the robust deviation of the share's logarithm. A row of fewer than three samples knows
/// its spread badly, and takes that of the next wider row when it is larger.
std::vector<EfficiencyFit> fit_efficiencies(std::span<const Sample> samples, const DeviceClass& device);

}  // namespace rehearse::calibrate
