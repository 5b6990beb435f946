// SPDX-License-Identifier: Apache-2.0
// Which measurements stand behind a price: those of problems most like the one that is asked for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/op.hpp"
#include "core/units.hpp"
#include "prices/prices.hpp"

namespace rehearse {

/// A measured problem of the same operator, pass and type as another.
struct NearSample {
    double distance = 0;  // of the logarithms, base 2, of operations and of bytes: 1 is twice as many of one of them
    Problem problem;
    Seconds time;
    Basis basis;
    std::string source;
};

/// The `most` samples nearest to a problem, nearest first, of those that were measured on the device or that its price
/// model has learned from.
std::vector<NearSample> nearest_samples(const Problem& wanted, const DeviceClass& device, std::size_t most);

}  // namespace rehearse
