// SPDX-License-Identifier: Apache-2.0
#include "calibrate/told.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/fit.hpp"

namespace rehearse::calibrate {

namespace {

constexpr double residuals = 3;

bool is_told(Seconds part, const MessageSample& of, double residual) {
    return part > of.one_way * (residuals * std::max(residual, least_error));
}

}  // namespace

bool tells_start(std::span<const MessageSample> samples, Seconds start, double residual) {
    return is_told(start, *std::ranges::min_element(samples, {}, &MessageSample::size), residual);
}

bool tells_rate(std::span<const MessageSample> samples, Bandwidth rate, double residual) {
    const MessageSample& largest = *std::ranges::max_element(samples, {}, &MessageSample::size);
    return is_told(largest.size / rate, largest, residual);
}

Bandwidth rate_from(std::span<const MessageSample> samples, Seconds start, Bytes up_to) {
    double product = 0, square = 0;  // of size and time, and of size; over the time's square
    for (const MessageSample& each : samples) {
        if (up_to.value > 0 && each.size > up_to) continue;
        const double size = each.size.value / each.one_way.value;
        product += size * ((each.one_way - start) / each.one_way);
        square += size * size;
    }
    return Bandwidth{product > 0 ? square / product : std::numeric_limits<double>::infinity()};
}

bool of_one_size(std::span<const MessageSample> samples) {
    return std::ranges::all_of(samples, [&](const MessageSample& each) { return each.size == samples.front().size; });
}

PieceFit line_from(std::span<const MessageSample> samples, Seconds start) {
    PieceFit fit;
    const Bandwidth rate = rate_from(samples, start);
    fit.pieces = {{{}, start, rate, {}}};
    fit.samples = std::ssize(samples);
    fit.grows = std::isfinite(rate.value);
    std::vector<double> residuals;
    for (const MessageSample& each : samples) residuals.push_back(each.one_way / (start + each.size / rate) - 1);
    fit.error = robust_deviation(residuals);
    return fit;
}

}  // namespace rehearse::calibrate
