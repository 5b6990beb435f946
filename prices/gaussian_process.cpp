// SPDX-License-Identifier: Apache-2.0
#include "prices/gaussian_process.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "core/error.hpp"

namespace rehearse {

namespace {

constexpr double offset_variance = 1, offset_correlation = 0.5;

double of_distance(Smoothness smoothness, double squared) {
    if (smoothness == Smoothness::gaussian) return std::exp(-0.5 * squared);
    const double d = std::sqrt(3 * squared);
    return (1 + d) * std::exp(-d);
}

}  // namespace

double covariance(const Covariance& model, const FeaturePoint& a, const FeaturePoint& b) {
    double sum = offset_variance * (a.task == b.task ? 1 : offset_correlation);
    for (const CovarianceTerm& term : model.terms) {
        double squared = 0;
        for (std::size_t i = 0; i < term.lengths.size(); ++i) {
            const double d = (a.features[i] - b.features[i]) / term.lengths[i];
            squared += d * d;
        }
        sum += term.amplitude * term.amplitude * of_distance(model.smoothness, squared) *
               (a.task == b.task ? 1 : term.task_correlation);
    }
    return sum;
}

Matrix covariances(const Covariance& model, std::span<const FeaturePoint> points) {
    Matrix matrix(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) matrix(i, j) = matrix(j, i) = covariance(model, points[i], points[j]);
        matrix(i, i) += model.noise * model.noise;
    }
    return matrix;
}

namespace {

Matrix with_errors(Matrix matrix, std::span<const double> errors) {
    for (std::size_t i = 0; i < errors.size(); ++i) matrix(i, i) += errors[i] * errors[i];
    return matrix;
}

}  // namespace

GaussianProcess::GaussianProcess(Covariance model, std::vector<FeaturePoint> points, std::span<const double> values,
                                 std::span<const double> errors)
    : model_(std::move(model)),
      points_(std::move(points)),
      factor_(cholesky(with_errors(covariances(model_, points_), errors))),
      weights_(solve(factor_, {values.begin(), values.end()})) {}

Estimate GaussianProcess::at(const FeaturePoint& point) const {
    std::vector<double> known(points_.size());
    Estimate result{0, covariance(model_, point, point) + model_.noise * model_.noise};
    for (std::size_t i = 0; i < points_.size(); ++i) {
        known[i] = covariance(model_, point, points_[i]);
        result.mean += known[i] * weights_[i];
    }
    solve_lower(factor_, known);
    for (const double value : known) result.variance -= value * value;
    return result;
}

double GaussianProcess::prior_variance() const {
    double sum = model_.noise * model_.noise;
    for (const CovarianceTerm& term : model_.terms) sum += term.amplitude * term.amplitude;
    return sum;
}

// With K^-1 = [.. B ..] and w = K^-1 y, the block's residual is B^-1 w and its covariance B^-1.
std::vector<Estimate> leave_out(const Covariance& model, std::span<const FeaturePoint> points,
                                std::span<const double> values, std::span<const int> groups) {
    require(points.size() == values.size() && points.size() == groups.size(), "a value and a group a point");
    const Matrix factor = cholesky(covariances(model, points));
    const Matrix precision = inverse(factor);
    const std::vector<double> weights = solve(factor, {values.begin(), values.end()});
    std::map<int, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < points.size(); ++i) members[groups[i]].push_back(i);
    std::vector<Estimate> result(points.size());
    for (const auto& [group, rows] : members) {
        Matrix block(rows.size());
        std::vector<double> weight;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            for (std::size_t j = 0; j < rows.size(); ++j) block(i, j) = precision(rows[i], rows[j]);
            weight.push_back(weights[rows[i]]);
        }
        const Matrix lower = cholesky(std::move(block));
        const std::vector<double> residual = solve(lower, weight);
        const Matrix spread = inverse(lower);
        for (std::size_t i = 0; i < rows.size(); ++i) result[rows[i]] = {values[rows[i]] - residual[i], spread(i, i)};
    }
    return result;
}

}  // namespace rehearse
