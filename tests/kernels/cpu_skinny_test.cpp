// SPDX-License-Identifier: Apache-2.0
// Products that read their large matrix as it lies, on each SIMD target and with several threads. Inputs are whole
// numbers, sums exact: nothing but equality will do.
#include "kernels/cpu/gemm/skinny.hpp"

#include "kernels/cpu/gemm/gemm_streamed.hpp"
#include "tests/kernels/cpu_convolutions.hpp"

namespace rehearse::kernels {
namespace {

class CpuProducts : public OnEachTarget {};

void expect_same(const MatMul& op, std::int64_t batch) {
    SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    const Backend& backend = cpu_algorithm("gemm");
    Tensors expected{op, batch, reference::backend()}, actual{op, batch, backend};
    expected.run_forward_and_backward(reference::backend());
    actual.run_forward_and_backward(backend);
    EXPECT_EQ(actual.dst, expected.dst);
    EXPECT_EQ(actual.diff_src, expected.diff_src);
    EXPECT_EQ(actual.diff_weights, expected.diff_weights);
}

// One more row than these products take, too: the other path begins there.
TEST_P(CpuProducts, OfEveryNumberOfFewRowsAreExact) {
    for (std::int64_t rows = 1; rows <= cpu::most_skinny_rows + 1; ++rows) {
        expect_same({1, 100, 37, rows % 2 == 0}, rows);  // 100: wide panels, single vectors and single columns
        expect_same({rows, 19, 5, true}, 1);
    }
}

TEST_P(CpuProducts, OfAwkwardSizesAreExact) {
    for (const auto& [n, k] : {std::pair{1, 1}, {1, 300}, {300, 1}, {15, 33}, {33, 15}, {16, 16}, {260, 7}}) {
        for (const std::int64_t rows : {1, 3, 8, 13}) expect_same({1, n, k, true}, rows);
    }
}

// Large enough that a gradient is written past the caches, and so with one column more, whose rows are not whole lines.
TEST_P(CpuProducts, OfALargeMatrixAreExact) {
    expect_same({1, 1024, 1027, false}, 3);
    expect_same({1, 1025, 1024, false}, 2);
}

TEST_P(CpuProducts, StreamedMatricesAreExact) {
    for (const cpu::GemmShape& s : std::vector<cpu::GemmShape>{
             {1, 1, 1}, {5, 32, 3}, {14, 64, 20}, {15, 65, 257}, {64, 200, 300}, {29, 31, 600}, {281, 96, 9}}) {
        SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k);
        const std::int64_t ldb = s.n + 5, ldc = s.n + 3;
        const auto a = whole_numbers(s.m * s.k, 1), b = whole_numbers(s.k * ldb, 2);
        std::vector<float> packed(cpu::packed_a_floats(s.m, s.k)), space(cpu::streamed_workspace(s.k));
        cpu::pack_a(s, {a.data(), s.k, 1}, packed.data());
        for (const bool accumulate : {false, true}) {
            auto c = whole_numbers(s.m * ldc, 3);
            auto expected = c;
            for (std::int64_t i = 0; i < s.m; ++i) {
                for (std::int64_t j = 0; j < s.n; ++j) {
                    std::int64_t sum = accumulate ? static_cast<std::int64_t>(c[i * ldc + j]) : 0;
                    for (std::int64_t l = 0; l < s.k; ++l)
                        sum += static_cast<std::int64_t>(a[i * s.k + l] * b[l * ldb + j]);
                    expected[i * ldc + j] = static_cast<float>(sum);
                }
            }
            cpu::gemm_streamed(s, packed.data(), b.data(), ldb, c.data(), ldc, accumulate, space.data());
            EXPECT_EQ(c, expected);
        }
    }
}

TEST_P(CpuProducts, ConvolutionsOfOnePixelAreExact) {
    for (const Conv& op :
         {Conv{300, 9, 8, 20, {}, 1, true}, Conv{5, 17, 19, 33, {}, 1, false}, Conv{12, 7, 7, 30, {}, 3, true}}) {
        const Largest largest = differences(op, 2, cpu_algorithm("im2col"));
        EXPECT_EQ(largest.dst, 0);
        EXPECT_EQ(largest.diff_src, 0);
        EXPECT_EQ(largest.diff_weights, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Simd, CpuProducts, testing::Combine(testing::ValuesIn(simd_targets()), testing::Values(1, 3)),
                         target_name);

}  // namespace
}  // namespace rehearse::kernels
