// SPDX-License-Identifier: Apache-2.0
// How fast a network trains, data-parallel, on so many devices with such a batch: points that were predicted or
// measured, and what lies between them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace rehearse::cluster {

/// One step of `devices` devices, each of which works on `batch_per_device` samples.
struct SpeedPoint {
    std::int64_t devices = 1, batch_per_device = 1;
    Seconds step;
};

/// What a job has of a cluster, and what it makes of it.
struct Share {
    std::int64_t devices = 0;
    std::int64_t batch = 0;    // of all of its devices together
    double samples_per_s = 0;  // 0: it cannot run so
    bool operator==(const Share&) const = default;
};

/// The batches (of all devices) that a job may be trained with.
struct BatchRange {
    std::int64_t least = 1, most = 1;
};

class Speeds {
public:
    /// InputError where there is no point, or one is given twice.
    explicit Speeds(const std::vector<SpeedPoint>& points);

    /// Of a batch that the devices share as evenly as they can; the one with most samples sets the pace. Between points
    /// the step is linear in samples a device, and in the logarithm of the number of devices. 0 outside of the points:
    /// more devices or samples a device than any point has, fewer of either than all have, or fewer samples than
    /// devices.
    double samples_per_s(std::int64_t devices, std::int64_t batch) const;

    /// The fastest of the batches in the range that are a multiple of the devices, or the range's ends. Between points
    /// b / step(b) rises or falls throughout, so only points and ends are looked at. `even`: multiples alone.
    Share best(std::int64_t devices, BatchRange batches, bool even = false) const;

    std::int64_t least_devices() const { return rows_.begin()->first; }
    std::int64_t most_devices() const { return rows_.rbegin()->first; }
    /// Samples that one device holds at most, where so many work together; 0 where no point is of so many.
    std::int64_t most_per_device(std::int64_t devices) const { return per_device(devices).most; }
    /// Samples of one device for which there are speeds, where so many work together; zeros where there are none.
    BatchRange per_device(std::int64_t devices) const;

private:
    using Row = std::map<std::int64_t, double>;  // seconds by samples a device
    /// Seconds; 0 where the row does not reach.
    static double step_in(const Row& row, std::int64_t per_device);
    double step(std::int64_t devices, std::int64_t per_device) const;

    std::map<std::int64_t, Row> rows_;  // by devices
};

/// Speeds by the name of a workload.
using SpeedTable = std::map<std::string, Speeds>;

/// CSV with the columns model, devices, batch_per_device, step_s. InputError with file and line.
SpeedTable read_speeds(std::string_view text, const std::string& origin);

}  // namespace rehearse::cluster
