// SPDX-License-Identifier: Apache-2.0
#include "cluster/speeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "core/error.hpp"
#include "models/csv.hpp"

namespace rehearse::cluster {

Speeds::Speeds(const std::vector<SpeedPoint>& points) {
    if (points.empty()) throw InputError("speeds: no point is given");
    for (const SpeedPoint& point : points) {
        require(point.devices > 0 && point.batch_per_device > 0 && point.step.value > 0, "a step that takes time");
        if (!rows_[point.devices].emplace(point.batch_per_device, point.step.value).second) {
            throw InputError(fmt::format("speeds: {} devices with {} samples each are given twice", point.devices,
                                         point.batch_per_device));
        }
    }
}

double Speeds::step_in(const Row& row, std::int64_t per_device) {
    const auto above = row.lower_bound(per_device);
    if (above == row.end()) return 0;
    if (above->first == per_device) return above->second;
    if (above == row.begin()) return 0;
    const auto below = std::prev(above);
    const double share =
        static_cast<double>(per_device - below->first) / static_cast<double>(above->first - below->first);
    return below->second + share * (above->second - below->second);
}

double Speeds::step(std::int64_t devices, std::int64_t per_device) const {
    const auto above = rows_.lower_bound(devices);
    if (above == rows_.end()) return 0;
    const double high = step_in(above->second, per_device);
    if (above->first == devices) return high;
    if (above == rows_.begin() || high == 0) return 0;
    const auto below = std::prev(above);
    const double low = step_in(below->second, per_device);
    if (low == 0) return 0;
    const auto log2 = [](std::int64_t n) { return std::log2(static_cast<double>(n)); };
    const double share = (log2(devices) - log2(below->first)) / (log2(above->first) - log2(below->first));
    return low + share * (high - low);
}

double Speeds::samples_per_s(std::int64_t devices, std::int64_t batch) const {
    if (devices < 1 || batch < devices) return 0;
    const double seconds = step(devices, (batch + devices - 1) / devices);
    return seconds > 0 ? static_cast<double>(batch) / seconds : 0;
}

Share Speeds::best(std::int64_t devices, BatchRange batches, bool even) const {
    Share best;
    if (devices < 1) return best;
    std::set<std::int64_t> candidates{batches.least, batches.most, batches.most / devices * devices,
                                      (batches.least + devices - 1) / devices * devices};
    const auto above = rows_.lower_bound(devices);
    for (auto row = above; row != rows_.end() && row == above; ++row) {
        for (const auto& [batch, step] : row->second) candidates.insert(batch * devices);
    }
    if (above != rows_.begin()) {
        for (const auto& [batch, step] : std::prev(above)->second) candidates.insert(batch * devices);
    }
    for (const std::int64_t batch : candidates) {
        if (batch < batches.least || batch > batches.most || (even && batch % devices != 0)) continue;
        const double rate = samples_per_s(devices, batch);
        if (rate > best.samples_per_s) best = {devices, batch, rate};
    }
    return best;
}

BatchRange Speeds::per_device(std::int64_t devices) const {
    const auto range = [](const Row& row) { return BatchRange{row.begin()->first, row.rbegin()->first}; };
    const auto above = rows_.lower_bound(devices);
    if (above == rows_.end()) return {0, 0};
    const BatchRange high = range(above->second);
    if (above->first == devices) return high;
    if (above == rows_.begin()) return {0, 0};
    const BatchRange low = range(std::prev(above)->second);
    return {std::max(low.least, high.least), std::min(low.most, high.most)};
}

SpeedTable read_speeds(std::string_view text, const std::string& origin) {
    const models::Csv csv(text, origin);
    std::map<std::string, std::vector<SpeedPoint>> points;
    for (std::size_t row = 0; row < csv.size(); ++row) {
        points[csv.text(row, "model")].push_back({csv.whole(row, "devices", 1), csv.whole(row, "batch_per_device", 1),
                                                  Seconds{csv.positive(row, "step_s")}});
    }
    SpeedTable table;
    for (const auto& [name, each] : points) {
        try {
            table.emplace(name, Speeds(each));
        } catch (const InputError& error) {
            throw InputError(fmt::format("{}: model '{}': {}", origin, name, error.what()));
        }
    }
    if (table.empty()) throw InputError(fmt::format("{}: it has no rows", origin));
    return table;
}

}  // namespace rehearse::cluster
