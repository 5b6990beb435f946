// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/error.hpp"
#include "prices/interval.hpp"

namespace rehearse::calibrate {

double median(std::vector<double> values) {
    require(!values.empty(), "a median needs values");
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double robust_deviation(const std::vector<double>& values) {
    const double center = median(values);
    std::vector<double> distances;
    distances.reserve(values.size());
    for (const double value : values) distances.push_back(std::abs(value - center));
    return 1.4826 * median(distances);
}

double conformal_deviation(std::vector<double> distances) {
    const std::size_t rank = (9 * (distances.size() + 1) + 9) / 10;  // rounded up
    if (rank > distances.size()) return 0;
    const auto at = distances.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(distances.begin(), at, distances.end());
    return *at / prices::ninety_percent;
}

double bounded_share(double share) { return std::min(share, 0.99 * share_limit); }

namespace {

// Nothing when the device has no peak of this type, or the problem neither operations nor bytes.
std::optional<double> log_fraction(const Sample& sample, const DeviceClass& device) {
    const Problem& p = sample.problem;
    const auto peak = device.peak.find(p.type);
    if (peak == device.peak.end()) return std::nullopt;
    const double compute = (flops(p.op, p.pass, p.batch) / peak->second.value).value;
    const double memory = (bytes_moved(p.op, p.pass, p.type, p.batch) / device.memory_bandwidth.value).value;
    // A problem as short as the launch itself says nothing about the roofline below it; keep a tenth for the work.
    const double work = std::max((sample.median - device.launch.value).value, 0.1 * sample.median.value);
    const double value = std::log(std::max(compute, memory) / work);
    return std::isfinite(value) ? std::optional{value} : std::nullopt;
}

EfficiencyFit row(const std::string& kind, std::optional<Pass> pass, const std::vector<double>& log_fractions,
                  double wider_error) {
    double error = robust_deviation(log_fractions);
    if (log_fractions.size() < 3) error = std::max(error, wider_error);
    return {{kind, pass, std::nullopt, bounded_share(std::exp(median(log_fractions))), std::min(error, 1.0), {}},
            static_cast<std::int64_t>(log_fractions.size())};
}

}  // namespace

std::vector<EfficiencyFit> fit_efficiencies(std::span<const Sample> samples, const DeviceClass& device) {
    std::vector<double> all;
    std::map<std::string, std::map<Pass, std::vector<double>>> by_kind;
    for (const Sample& sample : samples) {
        const std::optional<double> value = log_fraction(sample, device);
        if (!value) continue;
        all.push_back(*value);
        by_kind[std::string{kind_of(sample.problem.op)}][sample.problem.pass].push_back(*value);
    }
    if (all.empty()) return {};
    std::vector<EfficiencyFit> rows{row("*", std::nullopt, all, 0.5)};
    for (const auto& [kind, passes] : by_kind) {
        std::vector<double> of_kind;
        for (const auto& [pass, values] : passes) of_kind.insert(of_kind.end(), values.begin(), values.end());
        const EfficiencyFit wide = row(kind, std::nullopt, of_kind, rows.front().row.error);
        rows.push_back(wide);
        for (const auto& [pass, values] : passes) rows.push_back(row(kind, pass, values, wide.row.error));
    }
    return rows;
}

}  // namespace rehearse::calibrate
