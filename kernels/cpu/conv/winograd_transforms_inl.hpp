// SPDX-License-Identifier: Apache-2.0
// Y = A^T ((G g G^T) . (B^T d B)) A, F(m x m, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2016): polynomials multiplied by their values at 0, 1, -1, 2, -2, 1/2, -1/2 and infinity, as many as are
// needed. The gradient of the filters is the same form differentiated: dg = G^T ((A dy A^T) . (B^T d B)) G.
#if defined(REHEARSE_CPU_WINOGRAD_TRANSFORMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_WINOGRAD_TRANSFORMS_INL
#undef REHEARSE_CPU_WINOGRAD_TRANSFORMS_INL
#else
#define REHEARSE_CPU_WINOGRAD_TRANSFORMS_INL
#endif

#include "kernels/cpu/conv/tiles_stages_inl.hpp"
#include "kernels/cpu/conv/winograd_matrices.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

// sum + coefficient * v; the coefficient's value is known when this is compiled.
template <const auto& matrix, int row, int column>
HWY_INLINE Vec add_term(Vec sum, Vec v) {
    constexpr float coefficient = matrix[row][column];
    if constexpr (coefficient == 0) return sum;
    if constexpr (coefficient == 1) return hn::Add(sum, v);
    if constexpr (coefficient == -1) return hn::Sub(sum, v);
    return hn::MulAdd(hn::Set(Floats(), coefficient), v, sum);
}

template <const auto& matrix, int row, int column>
HWY_INLINE Vec first_term(Vec v) {
    constexpr float coefficient = matrix[row][column];
    if constexpr (coefficient == 1) return v;
    if constexpr (coefficient == -1) return hn::Neg(v);
    return hn::Mul(hn::Set(Floats(), coefficient), v);
}

// The terms of a row in columns `column`, `column` + 2, ... or, with step 1, in all of them.
template <const auto& matrix, int row, int column, int step, int columns>
HWY_INLINE Vec add_terms(Vec sum, const Vec* v) {
    if constexpr (column < columns) {
        return add_terms<matrix, row, column + step, step, columns>(add_term<matrix, row, column>(sum, v[column]), v);
    } else {
        return sum;
    }
}

template <const auto& matrix, int row, int column, int step, int columns>
HWY_INLINE Vec sum_terms(const Vec* v) {
    if constexpr (column >= columns) {
        return hn::Zero(Floats());
    } else if constexpr (matrix[row][column] == 0) {
        return sum_terms<matrix, row, column + step, step, columns>(v);
    } else {
        return add_terms<matrix, row, column + step, step, columns>(first_term<matrix, row, column>(v[column]), v);
    }
}

// out = matrix * in. Rows 2 i - 1 and 2 i belong to points x and -x: even columns are the same, odd ones negated.
template <const auto& matrix, int row = 0>
HWY_INLINE void to_points(const Vec* in, Vec* out) {
    constexpr int rows = static_cast<int>(matrix.size()), columns = static_cast<int>(matrix[0].size());
    if constexpr (row == 0 || row == rows - 1) {
        out[row] = sum_terms<matrix, row, 0, 1, columns>(in);
        if constexpr (row == 0) to_points<matrix, 1>(in, out);
    } else {
        const Vec even = sum_terms<matrix, row, 0, 2, columns>(in), odd = sum_terms<matrix, row, 1, 2, columns>(in);
        out[row] = hn::Add(even, odd);
        out[row + 1] = hn::Sub(even, odd);
        to_points<matrix, row + 2>(in, out);
    }
}

// Sums and differences of the pairs, in place.
template <int rows>
HWY_INLINE void combine_pairs(Vec* v) {
    for (int i = 1; i + 1 < rows; i += 2) {
        const Vec sum = hn::Add(v[i], v[i + 1]);
        v[i + 1] = hn::Sub(v[i], v[i + 1]);
        v[i] = sum;
    }
}

// Column `column` of the matrix times combined pairs: those of even columns are sums, of odd ones differences.
template <const auto& matrix, int column, int row, bool started>
HWY_INLINE Vec transposed_terms(const Vec* v, Vec sum) {
    constexpr int rows = static_cast<int>(matrix.size());
    if constexpr (row >= rows) {
        return sum;
    } else {
        constexpr bool pair = row > 0 && row < rows - 1;
        constexpr int next = pair ? row + 2 : row + 1;
        if constexpr (matrix[row][column] == 0) {
            return transposed_terms<matrix, column, next, started>(v, sum);
        } else {
            const Vec term = v[pair ? row + column % 2 : row];
            const Vec with = started ? add_term<matrix, row, column>(sum, term) : first_term<matrix, row, column>(term);
            return transposed_terms<matrix, column, next, true>(v, with);
        }
    }
}

// out = matrix^T * in; `in` is used up.
template <const auto& matrix, int column = 0>
HWY_INLINE void from_points(Vec* in, Vec* out) {
    if constexpr (column == 0) combine_pairs<static_cast<int>(matrix.size())>(in);
    if constexpr (column < static_cast<int>(matrix[0].size())) {
        out[column] = transposed_terms<matrix, column, 0, false>(in, hn::Zero(Floats()));
        from_points<matrix, column + 1>(in, out);
    }
}

/// points = matrix * from * matrix^T
template <const auto& matrix>
void square_to_points(const float* from, const Grid& grid, float* points, std::int64_t stride) {
    constexpr int rows = static_cast<int>(matrix.size()), columns = static_cast<int>(matrix[0].size());
    const Floats d;
    Vec half[columns][rows];
    for (int x = 0; x < columns; ++x) {
        Vec in[columns];
        for (int y = 0; y < columns; ++y) in[y] = hn::Load(d, from + y * grid.row + x * grid.col);
        to_points<matrix>(in, half[x]);
    }
    for (int y = 0; y < rows; ++y) {
        Vec in[columns], out[rows];
        for (int x = 0; x < columns; ++x) in[x] = half[x][y];
        to_points<matrix>(in, out);
        for (int x = 0; x < rows; ++x) hn::Store(out[x], d, points + (y * rows + x) * stride);
    }
}

/// to = matrix^T * points * matrix
template <const auto& matrix>
void square_from_points(const float* points, std::int64_t stride, float* to, const Grid& grid) {
    constexpr int rows = static_cast<int>(matrix.size()), columns = static_cast<int>(matrix[0].size());
    const Floats d;
    Vec half[rows][columns];
    for (int y = 0; y < rows; ++y) {
        Vec in[rows];
        for (int x = 0; x < rows; ++x) in[x] = hn::Load(d, points + (y * rows + x) * stride);
        from_points<matrix>(in, half[y]);
    }
    for (int x = 0; x < columns; ++x) {
        Vec in[rows], out[columns];
        for (int y = 0; y < rows; ++y) in[y] = half[y][x];
        from_points<matrix>(in, out);
        for (int y = 0; y < columns; ++y) hn::Store(out[y], d, to + y * grid.row + x * grid.col);
    }
}

template <class Matrices>
Transforms winograd_transforms() {
    constexpr auto size = static_cast<std::int64_t>(Matrices::a.size()), out = size - 2;
    return {.tile = {size, out, out, size * size},
            .input = square_to_points<Matrices::b>,
            .filter = square_to_points<Matrices::g>,
            .output = square_from_points<Matrices::a>,
            .diff_output = square_to_points<Matrices::a>,
            .diff_filter = square_from_points<Matrices::g>};
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
