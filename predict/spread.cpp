// SPDX-License-Identifier: Apache-2.0
#include "predict/spread.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "prices/tile_model.hpp"

namespace rehearse::predict {

namespace {

constexpr double anchor_error = 0.05;
constexpr double error_of_doubling = 0.03;
constexpr double cards_of_fits = 8;  // of the nodes that prices by tiles were fitted on (vTrain's A100)

}  // namespace

double slowest_of(double n) {
    const double below = (n - std::numbers::pi / 8) / (n - std::numbers::pi / 4 + 1);
    double low = 0, high = 10;
    while (high - low > 1e-6) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(-middle / std::numbers::sqrt2) < below ? low : high) = middle;
    }
    return 1 + card_spread * low;
}

double waiting(std::int64_t devices, const DeviceClass& device) {
    const auto n = static_cast<double>(devices);
    return slowest_of(n) / (fitted_on_steps(device) ? slowest_of(std::min(n, cards_of_fits)) : 1);
}

double distance_error(std::int64_t devices, std::int64_t measured_on) {
    const double doublings = std::log2(static_cast<double>(devices) / static_cast<double>(measured_on));
    return std::hypot(anchor_error, error_of_doubling * doublings);
}

}  // namespace rehearse::predict
