// SPDX-License-Identifier: Apache-2.0
#include "calibrate/learn.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace rehearse::calibrate {
namespace {

Covariance known(Smoothness smoothness) {
    return {smoothness, {CovarianceTerm{1, 0.6, {1.5, 30}}, CovarianceTerm{0.05, 0.5, {1, 1}}}, 0.02};
}

// Draws of the process itself: L times independent normals. The second feature hardly counts.
TrainingSet draw(const Covariance& covariance, int count, unsigned seed) {
    std::mt19937 random{seed};
    std::uniform_real_distribution<double> place{0, 10};
    std::normal_distribution<double> normal;
    TrainingSet set;
    for (int i = 0; i < count; ++i) set.points.push_back({{place(random), place(random)}, i % 3});
    const Matrix lower = cholesky(covariances(covariance, set.points));
    std::vector<double> noise(set.points.size());
    for (double& value : noise) value = normal(random);
    for (std::size_t i = 0; i < noise.size(); ++i) {
        double sum = 0;
        for (std::size_t j = 0; j <= i; ++j) sum += lower(i, j) * noise[j];
        set.values.push_back(sum);
    }
    return set;
}

// Central differences over h = 1e-5 err by h^2 of the third derivative and 1e-16 / h of rounding, of values near 100.
TEST(Objective, HasTheDerivativesThatItClaims) {
    for (const Smoothness smoothness : {Smoothness::gaussian, Smoothness::matern32}) {
        const std::vector<TrainingSet> sets{draw(known(smoothness), 20, 1), draw(known(smoothness), 15, 2)};
        const Covariance at = first_guess(smoothness, 2);
        const Objective here = objective(sets, at, known(smoothness));
        const std::vector<double> values = parameters(at);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto value = [&](double step) {
                std::vector<double> moved = values;
                moved[i] += step;
                return objective(sets, with_parameters(at, moved), known(smoothness)).value;
            };
            EXPECT_NEAR(here.gradient[i], (value(1e-5) - value(-1e-5)) / 2e-5, 1e-4 * (1 + std::abs(here.gradient[i])))
                << i;
        }
    }
}

// Two sets of 90 values from lengths 1.5 and 30: the likelihood must find which feature counts, and roughly how far.
// A length is known to about a fifth from some 14 independent stretches (two sets of range 10 over 1.5): half as much
// again either way is beyond two deviations.
TEST(Learning, RecoversWhatTheDataWereDrawnFrom) {
    const Covariance truth = known(Smoothness::gaussian);
    const std::vector<TrainingSet> sets{draw(truth, 90, 3), draw(truth, 90, 4)};
    const Covariance learned = learn(sets, first_guess(Smoothness::gaussian, 2), {}, 100);
    EXPECT_GT(learned.terms[0].lengths[0], 1.0);
    EXPECT_LT(learned.terms[0].lengths[0], 2.25);
    EXPECT_GT(learned.terms[0].lengths[1], 8 * learned.terms[0].lengths[0]);
    EXPECT_LT(learned.noise, 0.06);
    const Objective before = objective(sets, first_guess(Smoothness::gaussian, 2), {});
    EXPECT_LT(objective(sets, learned, {}).value, before.value);
}

TEST(Parameters, GoThereAndBack) {
    const Covariance truth = known(Smoothness::matern32);
    const Covariance back = with_parameters(truth, parameters(truth));
    for (std::size_t t = 0; t < 2; ++t) {
        EXPECT_NEAR(back.terms[t].amplitude, truth.terms[t].amplitude, 1e-12);
        EXPECT_NEAR(back.terms[t].task_correlation, truth.terms[t].task_correlation, 1e-12);
        EXPECT_NEAR(back.terms[t].lengths[1], truth.terms[t].lengths[1], 1e-12);
    }
}

}  // namespace
}  // namespace rehearse::calibrate
