// SPDX-License-Identifier: Apache-2.0
#include "core/matrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/error.hpp"

namespace rehearse {

namespace {

// Columns that are factored together: what is right of them is read and written once for all of them.
constexpr std::size_t panel = 8;
using Columns = std::array<std::vector<double>, panel>;

void require_positive(double pivot) {
    if (pivot > 0) return;
    throw BackendError(
        "a matrix of covariances is not positive definite: its values are too large or no numbers (of K-FAC: "
        "training diverges; a smaller --learning-rate, or a larger damping)");
}

// Columns `first` to `end` (excluded), of which nothing to the left is missing any more; `columns` gets copies.
void factor_panel(Matrix& matrix, std::size_t first, std::size_t end, Columns& columns) {
    const std::size_t n = matrix.size();
    for (std::size_t k = first; k < end; ++k) {
        std::vector<double>& column = columns.at(k - first);
        require_positive(matrix(k, k));
        const double diagonal = std::sqrt(matrix(k, k));
        for (std::size_t i = k; i < n; ++i) column[i] = matrix(i, k) /= diagonal;
        for (std::size_t i = k + 1; i < n; ++i) {
            double* row = matrix.row(i).data();
            for (std::size_t j = k + 1; j <= std::min(i, end - 1); ++j) row[j] -= column[i] * column[j];
        }
        for (std::size_t j = k + 1; j < n; ++j) matrix(k, j) = 0;
    }
}

// What a whole panel of columns takes off a row from `first` to its diagonal, in the order of the columns.
void take_off(std::span<double> row, std::size_t first, const Columns& columns) {
    const std::size_t i = row.size() - 1;
    std::array<double, panel> factor{};
    std::array<const double*, panel> column{};
    for (std::size_t k = 0; k < panel; ++k) {
        column[k] = columns[k].data();
        factor[k] = column[k][i];
    }
    for (std::size_t j = first; j <= i; ++j) {
        double value = row[j];
        for (std::size_t k = 0; k < panel; ++k) value -= factor[k] * column[k][j];
        row[j] = value;
    }
}

}  // namespace

// Right-looking, a panel of columns at a time: the inner loop runs along rows, over copies of the columns, so that it
// is contiguous.
Matrix cholesky(Matrix matrix) {
    const std::size_t n = matrix.size();
    Columns columns;
    for (std::vector<double>& column : columns) column.resize(n);
    for (std::size_t first = 0; first < n; first += panel) {
        const std::size_t end = std::min(first + panel, n);
        factor_panel(matrix, first, end, columns);
        for (std::size_t i = end; i < n; ++i) take_off(matrix.row(i).first(i + 1), end, columns);
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
