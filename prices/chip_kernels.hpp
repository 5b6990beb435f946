// SPDX-License-Identifier: Apache-2.0
// Whether a device's price model has kernels of its chip, beside those of boards, which know few problems.
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

}  // namespace rehearse
