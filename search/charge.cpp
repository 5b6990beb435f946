// SPDX-License-Identifier: Apache-2.0
#include "search/charge.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::search {

double steps_of(const predict::Training& training, std::int64_t global_batch) {
    const auto batch = static_cast<double>(global_batch);
    return training.dataset ? std::ceil(samples(training, batch) / batch) : 100;
}

Seconds wall_limit(double steps, Seconds step, Seconds high) { return 1.1 * steps * std::max(step, high); }

double kilowatt_hours(double node_hours, double watts_a_node) { return node_hours * watts_a_node / 1000; }

}  // namespace rehearse::search
