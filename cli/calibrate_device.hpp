// SPDX-License-Identifier: Apache-2.0
// calibrate --device: a machine file of one device of this host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report.hpp"
#include "core/units.hpp"

namespace rehearse::cli {

struct DeviceCalibration {
    std::string device;
    std::vector<std::string> models;
    std::vector<std::int64_t> batches;
    std::string fuse, machine_out;
    Bytes scratch_limit;
};

/// Measures what data-parallel training of the models takes on the device, in f32 and, where its precision is mixed, in
/// 16 bits, and writes the machine. InputError where there is no such device.
int calibrate_device(const DeviceCalibration& asked, const Common& common);

}  // namespace rehearse::cli
