// SPDX-License-Identifier: Apache-2.0
// The largest sizes that anything here works on: products of sizes below them fit into 64 bits (docs/limits.md).
#pragma once

#include <cstdint>
#include <span>

namespace rehearse {

inline constexpr double most_elements = 1e15;  // of a tensor, of a layer's weights
inline constexpr double most_work = 1e18;      // all sizes of an operator multiplied

/// The product of sizes, which may be larger than 64 bits hold; 1 without any.
inline double product_of(std::span<const std::int64_t> sizes) {
    double all = 1;
    for (const std::int64_t size : sizes) all *= static_cast<double>(size);
    return all;
}

}  // namespace rehearse
