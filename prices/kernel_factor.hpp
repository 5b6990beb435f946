// SPDX-License-Identifier: Apache-2.0
// What a few measured kernels of a board say of all its prices: one factor a kind of operator and type, and how far
// single kernels lie from it. docs/calibration.md says how they are made; machine files hold them as [[device.factor]].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/op.hpp"

namespace rehearse {

struct KernelFactor {
    std::string kind;  // of operators, as kind_of says it
    DataType type = DataType::f32;
    double factor = 1;         // measured over priced
    double error = 0;          // of the factor: relative, one standard deviation
    double scale = 1;          // what the errors of single prices are multiplied by
    std::int64_t kernels = 0;  // that it was found from
    std::string source;
};

/// The factor of operators of this kind and type, in all passes; null where none of them was measured.
inline const KernelFactor* factor_of(std::span<const KernelFactor> factors, std::string_view kind, DataType type) {
    const auto found = std::ranges::find_if(
        factors, [&](const KernelFactor& factor) { return factor.kind == kind && factor.type == type; });
    return found == factors.end() ? nullptr : &*found;
}

/// The error of a price that had `error`, once it is multiplied by the factor.
inline double error_after(const KernelFactor& factor, double error) {
    return std::hypot(factor.scale * error, factor.error);
}

}  // namespace rehearse
