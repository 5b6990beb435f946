// SPDX-License-Identifier: Apache-2.0
// The little linear algebra that prices need: symmetric positive definite matrices of a few hundred rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rehearse {

/// A square matrix, row-major.
class Matrix {
public:
    explicit Matrix(std::size_t size) : size_(size), values_(size * size) {}
    std::size_t size() const { return size_; }
    double& operator()(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
    double operator()(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }
    std::span<double> row(std::size_t at) { return std::span{values_}.subspan(at * size_, size_); }
    std::span<const double> row(std::size_t at) const { return std::span{values_}.subspan(at * size_, size_); }

private:
    std::size_t size_;
    std::vector<double> values_;
};

/// L, lower triangular, with matrix = L L^T; only the lower triangle is read. n^3 / 3 multiply-adds.
/// BackendError when the matrix is not positive definite.
Matrix cholesky(Matrix matrix);
/// L^-1 values, in place; n^2 / 2 multiply-adds.
void solve_lower(const Matrix& lower, std::span<double> values);
/// (L L^T)^-1 values.
std::vector<double> solve(const Matrix& lower, std::vector<double> values);
/// (L L^T)^-1.
Matrix inverse(const Matrix& lower);
/// 2 sum of log L(i, i).
double log_determinant(const Matrix& lower);

}  // namespace rehearse
