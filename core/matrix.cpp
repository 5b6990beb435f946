// SPDX-License-Identifier: Apache-2.0
#include "core/matrix.hpp"

#include <cmath>

#include "core/error.hpp"

namespace rehearse {

// Right-looking: the inner loop runs along rows, over a copy of the column, so that it is contiguous.
Matrix cholesky(Matrix matrix) {
    const std::size_t n = matrix.size();
    std::vector<double> column(n);
    for (std::size_t k = 0; k < n; ++k) {
        if (!(matrix(k, k) > 0)) {
            throw BackendError(
                "a matrix of covariances is not positive definite: its values are too large or no numbers (of K-FAC: "
                "training diverges; a smaller --learning-rate, or a larger damping)");
        }
        const double diagonal = std::sqrt(matrix(k, k));
        for (std::size_t i = k; i < n; ++i) column[i] = matrix(i, k) /= diagonal;
        for (std::size_t i = k + 1; i < n; ++i) {
            const double factor = column[i];
            double* row = matrix.row(i).data();
            for (std::size_t j = k + 1; j <= i; ++j) row[j] -= factor * column[j];
            matrix(k, i) = 0;
        }
    }
    return matrix;
}

void solve_lower(const Matrix& lower, std::span<double> values) {
    for (std::size_t i = 0; i < lower.size(); ++i) {
        double sum = values[i];
        const double* row = lower.row(i).data();
        for (std::size_t j = 0; j < i; ++j) sum -= row[j] * values[j];
        values[i] = sum / row[i];
    }
}

std::vector<double> solve(const Matrix& lower, std::vector<double> values) {
    solve_lower(lower, values);
    for (std::size_t i = lower.size(); i-- > 0;) {
        values[i] /= lower(i, i);
        const double* row = lower.row(i).data();
        for (std::size_t j = 0; j < i; ++j) values[j] -= row[j] * values[i];
    }
    return values;
}

// Rows of M = L^-1 by forward substitution on all columns at once, then M^T M.
Matrix inverse(const Matrix& lower) {
    const std::size_t n = lower.size();
    Matrix m(n), result(n);
    for (std::size_t i = 0; i < n; ++i) {
        double* row = m.row(i).data();
        row[i] = 1;
        for (std::size_t k = 0; k < i; ++k) {
            const double factor = lower(i, k);
            const double* above = m.row(k).data();
            for (std::size_t j = 0; j <= k; ++j) row[j] -= factor * above[j];
        }
        for (std::size_t j = 0; j <= i; ++j) row[j] /= lower(i, i);
    }
    for (std::size_t k = 0; k < n; ++k) {
        const double* row = m.row(k).data();
        for (std::size_t i = 0; i <= k; ++i) {
            double* out = result.row(i).data();
            for (std::size_t j = 0; j <= i; ++j) out[j] += row[i] * row[j];
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) result(j, i) = result(i, j);
    }
    return result;
}

double log_determinant(const Matrix& lower) {
    double sum = 0;
    for (std::size_t i = 0; i < lower.size(); ++i) sum += 2 * std::log(lower(i, i));
    return sum;
}

}  // namespace rehearse
