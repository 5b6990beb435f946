// SPDX-License-Identifier: Apache-2.0
// Regression with a Gaussian process (Rasmussen and Williams 2006, chapter 2): what is known at some points says what
// to expect at others, and how surely. Points are vectors of features and a task; tasks (the passes of an operator)
// share what they have in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.hpp"

namespace rehearse {

struct FeaturePoint {
    std::vector<double> features;
    int task = 0;
};

/// amplitude^2 * shape(distance) * (1 within a task, `task_correlation` between two), distance^2 the sum of
/// ((a_i - b_i) / lengths_i)^2.
struct CovarianceTerm {
    double amplitude = 1;
    double task_correlation = 1;
    std::vector<double> lengths;  // of the first features; those beyond do not count
};

enum class Smoothness {
    matern32,  // (1 + sqrt(3) d) exp(-sqrt(3) d)
    gaussian   // exp(-d^2 / 2)
};

/// A far-reaching and a short-range term, an offset of each task (standard deviation 1, correlation one half between
/// tasks), and the noise of a measurement.
struct Covariance {
    Smoothness smoothness = Smoothness::gaussian;
    std::array<CovarianceTerm, 2> terms;
    double noise = 0.01;
};

/// Between two points, without noise.
double covariance(const Covariance& model, const FeaturePoint& a, const FeaturePoint& b);
/// Of the points with themselves, noise on the diagonal.
Matrix covariances(const Covariance& model, std::span<const FeaturePoint> points);

struct Estimate {
    double mean = 0, variance = 0;  // variance of a new measurement: with noise
};

class GaussianProcess {
public:
    /// Conditions on values[i] at points[i]; n^3 / 3 multiply-adds. errors[i]: its standard deviation beside the
    /// model's noise; empty: none. `nearest`: where there are more points, each price goes by so many that vary most
    /// with its own: nearest^3 / 3 multiply-adds a price then, and none before.
    GaussianProcess(Covariance model, std::vector<FeaturePoint> points, std::span<const double> values,
                    std::span<const double> errors = {}, std::size_t nearest = SIZE_MAX);
    Estimate at(const FeaturePoint& point) const;
    /// What a point far from all known ones would get as variance, about.
    double prior_variance() const;

private:
    Estimate at_by_nearest(const FeaturePoint& point) const;

    Covariance model_;
    std::vector<FeaturePoint> points_;
    std::vector<double> values_, errors_;  // where prices go by the nearest points
    std::size_t nearest_;
    Matrix factor_;  // of all points; else empty
    std::vector<double> weights_;
};

/// What each point would get if all points of its group were unknown: the same numbers as conditioning anew without
/// the group (ibid., section 5.4.2, for blocks), at the price of one inversion.
std::vector<Estimate> leave_out(const Covariance& model, std::span<const FeaturePoint> points,
                                std::span<const double> values, std::span<const int> groups);

}  // namespace rehearse
