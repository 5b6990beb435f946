// SPDX-License-Identifier: Apache-2.0
// Whole training steps that were measured and predicted from the prices of their parts, and what they say of these.
#pragma once

#include <span>
#include <string>

#include "core/machine.hpp"

namespace rehearse::calibrate {

struct CheckedStep {
    std::string model, plan;
    Seconds predicted, measured;
    double noise = 0;  // relative deviation between steps
    int steps = 0;
    double error() const { return predicted / measured - 1; }
};

/// By so much one may exceed the other before the prices themselves are in doubt: twice what nine of ten steps are off
/// on a host that does nothing else (docs/calibration.md).
inline constexpr double most_in_doubt = 1.25;

/// The spread of predicted over measured about 1, and the median noise. Where a step contradicts the prices, why they
/// are in doubt, with a noise that makes a band of 90 % hold that step. InputError without steps.
InSitu in_situ(std::span<const CheckedStep> checked, const std::string& host, const std::string& date);

}  // namespace rehearse::calibrate
