// SPDX-License-Identifier: Apache-2.0
#include "run/reference/gradient_check.hpp"

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

TEST(Adasum, CombinesAsWorkedOutByHand) {
    using Vectors = std::vector<std::vector<double>>;
    // a.b = 1, |a|^2 = 1, |b|^2 = 2: a / 2 + 3 b / 4.
    EXPECT_EQ(adasum_of({{1, 0}, {1, 1}}), (std::vector<double>{1.25, 0.75}));
    EXPECT_EQ(adasum_of({{0, 3}, {5, 0}}), (std::vector<double>{5, 3}));    // orthogonal: the sum
    EXPECT_EQ(adasum_of({{2, 4}, {6, 12}}), (std::vector<double>{4, 8}));   // parallel: the mean
    EXPECT_EQ(adasum_of({{0, 0}, {6, 12}}), (std::vector<double>{6, 12}));  // nothing
    EXPECT_EQ(adasum_of(Vectors(8, {3, 1})), (std::vector<double>{3, 1}));
    EXPECT_EQ(adasum_of({{1, 1}, {1, 0}, {0, 2}}),
              (std::vector<double>{1.25 * (1 - 1.5 / 4.25), (1 - 1.5 / 4.25) * 0.75 + (1 - 1.5 / 8) * 2}));
}

}  // namespace
}  // namespace rehearse::run
