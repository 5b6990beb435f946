// SPDX-License-Identifier: Apache-2.0
// What a step costs on a device: a measured sample where there is one, a line through samples of other batch sizes, the
// device's price model, or its roofline. Every price knows its error and where it came from.
#pragma once

#include <string>
#include <string_view>

#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse {

/// "measured here", "measured on this device class", "modelled".
std::string_view to_string(Basis basis);

struct Price {
    Seconds time;
    double error = 0;  // relative, one standard deviation
    std::string
        source;  // "measured ...", "between two measured batches ...", "between the shapes of ...", "roofline ..."
    Basis basis = Basis::modelled;
};

/// Measured, else interpolated between measured batches of the same op, pass and type, else from the device's price
/// model (kernels of other shapes, prices/price_model.hpp) or its tiles (prices/tile_model.hpp; first where they say
/// so), else max(flops / peak, bytes / memory bandwidth) / efficiency + launch (Williams et al. 2009). What was not
/// measured is multiplied by the factor of its kind that a few kernels of the board gave, if any. InputError when the
/// device has neither samples nor the peak or bandwidth that the roofline needs.
Price price(const Problem& problem, const DeviceClass& device);

/// Which end of the band to compute, in standard deviations: every price at nominal * (1 + value * error), never below
/// half of nominal.
struct ZScore {
    double value = 0;
};
inline constexpr ZScore nominal{0}, low{-1}, high{1};
Seconds at(const Price& price, ZScore z_score);

}  // namespace rehearse
