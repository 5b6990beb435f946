// SPDX-License-Identifier: Apache-2.0
// Measurements of one problem, however many files they stand in, as one sample.
#pragma once

#include <vector>

#include "calibrate/samples.hpp"

namespace rehearse::calibrate {

/// Returns one sample a problem, in the order of their names. What one implementation took is one sample of all its
/// `times`, wherever they were measured; of several implementations the fastest counts.
std::vector<Sample> merged(const std::vector<Sample>& samples);

}  // namespace rehearse::calibrate
