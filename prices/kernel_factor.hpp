// SPDX-License-Identifier: Apache-2.0
// What a few measured kernels of a board say of all its prices: one factor a kind of operator, and how far single
// kernels lie from it. docs/calibration.md says how they are made; machine files hold them as [[device.factor]].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rehearse {

struct KernelFactor {
    std::string kind;          // of operators, as kind_of says it
    double factor = 1;         // measured over priced
    double error = 0;          // of the factor: relative, one standard deviation
    double scale = 1;          // what the errors of single prices are multiplied by
    std::int64_t kernels = 0;  // that it was found from
    std::string source;
};

/// The factor of operators of this kind; null where none of them was measured.
inline const KernelFactor* factor_of(std::span<const KernelFactor> factors, std::string_view kind) {
    const auto found = std::ranges::find(factors, kind, &KernelFactor::kind);
    return found == factors.end() ? nullptr : &*found;
}

/// The error of a price that had `error`, once it is multiplied by the factor.
inline double error_after(const KernelFactor& factor, double error) {
    return std::hypot(factor.scale * error, factor.error);
}

}  // namespace rehearse
