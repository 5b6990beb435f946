// SPDX-License-Identifier: Apache-2.0
// C = A B or C += A B in f32, on one thread: callers share a product among threads by its rows, columns or number.
// Blocks of A and B are packed into panels as tall and as wide as a block of registers (Goto and van de Geijn 2008).
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// C is m x n, A m x k, B k x n.
struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
};

/// Element (i, j) lies at data[i * row + j * column]. Row-major: {data, ld, 1}; its transpose: {data, 1, ld}.
struct MatrixView {
    const float* data = nullptr;
    std::int64_t row = 0, column = 1;
};

/// C is row-major. `workspace` holds gemm_workspace floats of this shape or a larger one, best aligned to 64 bytes.
void gemm(GemmShape shape, MatrixView a, MatrixView b, float* c, std::int64_t ldc, bool accumulate, float* workspace);
std::int64_t gemm_workspace(GemmShape shape);

/// For many products of one shape, or one operand of many products. Packed A is ceil(m / panel_rows(m)) panels, each k
/// columns of panel_rows(m) numbers; packed B is ceil(n / panel_columns()) panels, each k rows of panel_columns()
/// numbers. What lies beyond m and n is packed as zeros. A caller may write that layout himself. The sizes belong to
/// the SIMD target in use: forcing another one between packing and multiplying is a bug.
std::int64_t panel_rows(std::int64_t m);
std::int64_t panel_columns();
std::int64_t packed_a_floats(std::int64_t m, std::int64_t k);
std::int64_t packed_b_floats(std::int64_t n, std::int64_t k);
void pack_a(GemmShape shape, MatrixView a, float* packed);
void pack_b(GemmShape shape, MatrixView b, float* packed);

/// As pack_a, but only part `part` of `parts`, whole panels each: for as many threads that pack one operand together.
void pack_a_part(GemmShape shape, MatrixView a, std::int64_t part, std::int64_t parts, float* packed);
void gemm_packed(GemmShape shape, const float* packed_a, const float* packed_b, float* c, std::int64_t ldc,
                 bool accumulate);

}  // namespace rehearse::kernels::cpu
