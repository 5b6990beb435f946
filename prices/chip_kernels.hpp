// SPDX-License-Identifier: Apache-2.0
// Which kernels a device has: whether its price model has those of its chip, beside those of boards, which know few
// problems; and whether its chip multiplies on matrix units.
#pragma once

#include <algorithm>
#include <string_view>

#include "core/machine.hpp"
#include "prices/price_model.hpp"

namespace rehearse {

inline bool has_chip_kernels(const DeviceClass& device, std::string_view kind, DataType type) {
    if (device.model == nullptr) return false;
    return std::ranges::any_of(device.model->kernels(), [&](const MeasuredKernels& each) {
        return each.kind == kind && each.type == type && !each.sheet.board;
    });
}

/// Whether products of the type run on matrix units. Lanes may multiply two f16 at once, as a P100's do; matrix units
/// multiply four times as much as lanes in f32 or more, or types that lanes do not have.
inline bool has_matrix_units(const DeviceClass& device, DataType type) {
    constexpr double least = 4;
    const auto peak = device.peak.find(type), lanes = device.peak.find(DataType::f32);
    if (peak == device.peak.end() || lanes == device.peak.end()) return false;
    const double times = peak->second.value / lanes->second.value;
    const bool other_types = device.peak.contains(DataType::bf16) || device.peak.contains(DataType::tf32);
    return times >= least || (times > 1 && other_types);
}

}  // namespace rehearse
