// SPDX-License-Identifier: Apache-2.0
// What a step costs on a device: a measured sample where there is one, a line through samples of other batch sizes, the
// device's price model, or its roofline. Every price knows its error and where it came from.
#pragma once

#include <string>

#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse {

struct Price {
    Seconds time;
    double error = 0;  // relative, one standard deviation
    std::string
        source;  // "measured ...", "between two measured batches ...", "between the shapes of ...", "roofline ..."
};

/// Measured, else interpolated between measured batches of the same op, pass and type, else from the device's price
/// model (kernels of other shapes, core/price_model.hpp) or its tiles (core/tile_model.hpp), else
/// max(flops / peak, bytes / memory bandwidth) / efficiency + launch (Williams et al. 2009).
/// InputError when the device has neither samples nor the peak or bandwidth that the roofline needs.
Price price(const Problem& problem, const DeviceClass& device);

/// Which end of the band to compute: every price at nominal * (1 + z * error), never below half of nominal.
struct Quantile {
    double z = 0;
};
inline constexpr Quantile nominal{0}, low{-1}, high{1};
Seconds at(const Price& price, Quantile quantile);

}  // namespace rehearse
