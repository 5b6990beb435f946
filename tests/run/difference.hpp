// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>

namespace rehearse::test {

/// |a - b| / |b| in the Euclidean norm.
inline double difference(std::span<const float> a, std::span<const float> b) {
    EXPECT_EQ(a.size(), b.size());
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        apart += std::pow(static_cast<double>(a[i]) - b[i], 2);
        size += std::pow(static_cast<double>(b[i]), 2);
    }
    EXPECT_GT(size, 0) << "numbers that are all zero prove nothing";
    return std::sqrt(apart / size);
}

}  // namespace rehearse::test
