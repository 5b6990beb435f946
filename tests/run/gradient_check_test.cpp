// SPDX-License-Identifier: Apache-2.0
#include "run/gradient_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace rehearse::run {
namespace {

TEST(SummationTolerance, HoldsForSumsInAnyOrder) {
    std::mt19937 random{1};
    std::normal_distribution<float> normal;
    for (const std::int64_t terms : {2, 3, 4, 16, 100}) {
        for (int trial = 0; trial < 200; ++trial) {
            std::vector<float> values(static_cast<std::size_t>(terms));
            for (float& value : values) value = normal(random);
            double exact = 0, magnitude = 0;
            float chain = 0;
            for (const float value : values) {
                exact += value;
                magnitude += std::abs(static_cast<double>(value));
                chain += value;
            }
            EXPECT_LE(std::abs(chain - exact) / magnitude, summation_tolerance(terms));
        }
    }
}

TEST(SummationTolerance, OfOneTermIsNothing) { EXPECT_EQ(summation_tolerance(1), 0); }

TEST(SummationTolerance, IsTooSmallForALostTerm) {
    // 1000 equal terms, one of them lost: an error of 1e-3.
    EXPECT_LT(summation_tolerance(1000), 1e-3);
}

}  // namespace
}  // namespace rehearse::run
