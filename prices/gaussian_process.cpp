// SPDX-License-Identifier: Apache-2.0
#include "prices/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
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
                                 std::span<const double> errors, std::size_t nearest)
    : model_(std::move(model)), points_(std::move(points)), nearest_(nearest), factor_(0) {
    require(nearest_ > 0, "a price goes by a point at least");
    if (points_.size() > nearest_) {
        values_.assign(values.begin(), values.end());
        errors_.assign(errors.begin(), errors.end());
        return;
    }
    factor_ = cholesky(with_errors(covariances(model_, points_), errors));
    weights_ = solve(factor_, {values.begin(), values.end()});
}

Estimate GaussianProcess::at(const FeaturePoint& point) const {
    if (points_.size() > nearest_) return at_by_nearest(point);
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

Estimate GaussianProcess::at_by_nearest(const FeaturePoint& point) const {
    std::vector<double> with_all(points_.size());
    std::vector<std::size_t> places(points_.size());
    std::iota(places.begin(), places.end(), 0);
    for (const std::size_t i : places) {
        with_all[i] = covariance(model_, point, points_[i]);
        require(std::isfinite(with_all[i]), "a covariance is a number, so that points have an order");
    }
    // Of equals the first, so that a price does not depend on how they are sorted.
    const auto nearer = [&](std::size_t a, std::size_t b) {
        return with_all[a] != with_all[b] ? with_all[a] > with_all[b] : a < b;
    };
    const auto last = places.begin() + static_cast<std::ptrdiff_t>(nearest_);
    std::nth_element(places.begin(), last, places.end(), nearer);
    std::sort(places.begin(), last);
    std::vector<FeaturePoint> points;
    std::vector<double> values, errors;
    for (auto place = places.begin(); place != last; ++place) {
        points.push_back(points_[*place]);
        values.push_back(values_[*place]);
        if (!errors_.empty()) errors.push_back(errors_[*place]);
    }
    return GaussianProcess{model_, std::move(points), values, errors, nearest_}.at(point);
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
