// SPDX-License-Identifier: Apache-2.0
#include "prices/gaussian_process.hpp"
#include "core/error.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace rehearse {
namespace {

Matrix matrix(std::vector<std::vector<double>> rows) {
    Matrix result(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = 0; j < rows.size(); ++j) result(i, j) = rows[i][j];
    }
    return result;
}

// L = {{2}, {1, 2}, {3, 1, 1}} by hand, L L^T = {{4, 2, 6}, {2, 5, 5}, {6, 5, 11}}: all whole numbers, so exact.
TEST(Matrices, AreFactoredAndSolvedExactly) {
    const Matrix lower = cholesky(matrix({{4, 2, 6}, {2, 5, 5}, {6, 5, 11}}));
    EXPECT_THAT(lower.row(0), testing::ElementsAre(2, 0, 0));
    EXPECT_THAT(lower.row(1), testing::ElementsAre(1, 2, 0));
    EXPECT_THAT(lower.row(2), testing::ElementsAre(3, 1, 1));
    EXPECT_DOUBLE_EQ(log_determinant(lower), std::log(16.0));
    EXPECT_THAT(solve(lower, {12, 12, 22}), testing::ElementsAre(1, 1, 1));  // the rows' sums
    const Matrix inverted = inverse(lower);
    EXPECT_THAT(inverted.row(0), testing::ElementsAre(30.0 / 16, 8.0 / 16, -20.0 / 16));  // cofactors over 16
    EXPECT_THAT(inverted.row(2), testing::ElementsAre(-20.0 / 16, -8.0 / 16, 16.0 / 16));
    EXPECT_THROW(cholesky(matrix({{1, 2}, {2, 1}})), BackendError);
}

// Two panels of columns and a part of one; whole numbers again.
TEST(Matrices, OfSeveralPanelsAreFactoredExactly) {
    constexpr std::size_t n = 21;
    Matrix lower(n), whole(n);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) lower(i, j) = static_cast<double>((7 * i + 3 * j) % 5) - 2;
        lower(i, i) = static_cast<double>(1 + i % 3);
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t k = 0; k < n; ++k) whole(i, j) += lower(i, k) * lower(j, k);
        }
    }
    const Matrix factor = cholesky(whole);
    for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(std::ranges::equal(factor.row(i), lower.row(i))) << i;
    whole(18, 18) -= 1;  // lower(18, 18) = 1: nothing is left of the pivot
    EXPECT_THROW(cholesky(whole), BackendError);
}

Covariance model(Smoothness smoothness = Smoothness::gaussian) {
    return {smoothness, {CovarianceTerm{2, 0.5, {1.0}}, CovarianceTerm{1, 0.25, {0.5}}}, 0.1};
}

TEST(Covariances, FollowTheirFormula) {
    const FeaturePoint a{{0}, 0}, b{{1}, 0}, c{{1}, 1};
    // 1 + 4 exp(-1/2) + exp(-2), and across tasks 0.5 + 2 exp(-1/2) + exp(-2) / 4.
    EXPECT_DOUBLE_EQ(covariance(model(), a, b), 1 + 4 * std::exp(-0.5) + std::exp(-2.0));
    EXPECT_DOUBLE_EQ(covariance(model(), a, c), 0.5 + 2 * std::exp(-0.5) + std::exp(-2.0) / 4);
    const double d = std::sqrt(3.0);
    EXPECT_DOUBLE_EQ(covariance(model(Smoothness::matern32), a, b),
                     1 + 4 * (1 + d) * std::exp(-d) + (1 + 2 * d) * std::exp(-2 * d));
}

// One known point: mean = k y / (v + noise^2), variance = v + noise^2 - k^2 / (v + noise^2), with v = 1 + 4 + 1.
TEST(GaussianProcess, OfOnePointIsTheTextbooksFormula) {
    const GaussianProcess process{model(), {{{0}, 0}}, std::vector<double>{3.0}};
    const double known = 6 + 0.01, k = covariance(model(), {{0}, 0}, {{1}, 0});
    const Estimate estimate = process.at({{1}, 0});
    EXPECT_NEAR(estimate.mean, k * 3 / known, 1e-12);
    EXPECT_NEAR(estimate.variance, known - k * k / known, 1e-12);
    EXPECT_GT(process.at({{100}, 0}).variance, 5);  // far away little is known
}

struct Draw {
    std::vector<FeaturePoint> points;
    std::vector<double> values;
    std::vector<int> groups;
};

// A sample of the process itself: L times independent normals.
Draw draw(const Covariance& covariance, int count) {
    std::mt19937 random{7};
    std::uniform_real_distribution<double> place{0, 40};
    std::normal_distribution<double> normal;
    Draw d;
    for (int i = 0; i < count; ++i) {
        d.points.push_back({{place(random)}, i % 2});
        d.groups.push_back(i / 3);
    }
    const Matrix lower = cholesky(covariances(covariance, d.points));
    std::vector<double> noise(d.points.size());
    for (double& value : noise) value = normal(random);
    for (std::size_t i = 0; i < noise.size(); ++i) {
        double sum = 0;
        for (std::size_t j = 0; j <= i; ++j) sum += lower(i, j) * noise[j];
        d.values.push_back(sum);
    }
    return d;
}

TEST(LeaveOut, EqualsConditioningWithoutTheGroup) {
    const Draw d = draw(model(), 30);
    const std::vector<Estimate> left_out = leave_out(model(), d.points, d.values, d.groups);
    for (std::size_t i = 0; i < d.points.size(); ++i) {
        std::vector<FeaturePoint> points;
        std::vector<double> values;
        for (std::size_t j = 0; j < d.points.size(); ++j) {
            if (d.groups[j] == d.groups[i]) continue;
            points.push_back(d.points[j]);
            values.push_back(d.values[j]);
        }
        const Estimate anew = GaussianProcess{model(), points, values}.at(d.points[i]);
        EXPECT_NEAR(left_out[i].mean, anew.mean, 1e-8);  // condition number below 1e5, 1e-16 a step
        EXPECT_NEAR(left_out[i].variance, anew.variance, 1e-8);
    }
}

// Of 300 points on a line of 30, all but the nearest 60 lie six and more of the longest length away: exp(-18) of what
// is told. Where all are the nearest, nothing changes.
TEST(GaussianProcess, GoesByTheNearestPoints) {
    std::vector<FeaturePoint> points;
    std::vector<double> values, errors;
    for (int i = 0; i < 300; ++i) {
        points.push_back({{0.1 * ((7 * i) % 300) * 2}, 0});
        values.push_back(std::sin(points.back().features[0]));
        errors.push_back(i % 3 == 0 ? 0.3 : 0.05);
    }
    const Covariance far{Smoothness::gaussian, {CovarianceTerm{2, 0.5, {1.0}}, CovarianceTerm{1, 0.25, {0.5}}}, 0.1};
    const GaussianProcess all{far, points, values, errors}, same{far, points, values, errors, 300};
    const GaussianProcess some{far, points, values, errors, 60};
    for (const double at : {3.3, 30.05, 41.7}) {
        const Estimate whole = all.at({{at}, 0}), near = some.at({{at}, 0});
        EXPECT_EQ(same.at({{at}, 0}).mean, whole.mean);
        EXPECT_NEAR(near.mean, whole.mean, 0.02);
        EXPECT_NEAR(std::sqrt(near.variance), std::sqrt(whole.variance), 0.02);
        EXPECT_GE(near.variance, whole.variance * (1 - 1e-9)) << "who knows less is less sure";
    }
    EXPECT_THROW(static_cast<void>(some.at({{std::nan("")}, 0})), std::logic_error) << "nothing is nearest";
}

// 300 values, of which 90 % should lie within 1.645 deviations: a binomial's deviation is sqrt(0.09 / 300) = 1.7 %, and
// neighbours are correlated: five of them either way.
TEST(LeaveOut, BandsHoldTheirShareOfWhatTheProcessDraws) {
    const Draw d = draw(model(), 300);
    const std::vector<Estimate> left_out = leave_out(model(), d.points, d.values, d.groups);
    double inside = 0;
    for (std::size_t i = 0; i < d.values.size(); ++i)
        inside += std::abs(d.values[i] - left_out[i].mean) <= 1.645 * std::sqrt(left_out[i].variance) ? 1 : 0;
    EXPECT_NEAR(inside / 300, 0.9, 0.085);
}

}  // namespace
}  // namespace rehearse
