// SPDX-License-Identifier: Apache-2.0
// Our own fused kernels, compiled for each SIMD target that this machine has, on one thread and on three.
#include <gmock/gmock.h>

#include "tests/kernels/cpu_convolutions.hpp"
#include "tests/kernels/fused.hpp"

namespace rehearse::kernels {
namespace {

class CpuFused : public OnEachTarget {};
INSTANTIATE_TEST_SUITE_P(, CpuFused, testing::Combine(testing::ValuesIn(simd_targets()), testing::Values(1, 3)),
                         target_name);

TEST_P(CpuFused, ConvolutionsAndReluAreTheTwo) {
    for (const char* algorithm : {"direct", "im2col", "winograd2", "winograd4", "winograd6", "fft"}) {
        for (const Conv& op : convolutions_with_relu) expect_exactly_as_chain(op, 2, cpu_algorithm(algorithm));
    }
}

TEST_P(CpuFused, ProductsAndActivationsAreTheTwo) {
    for (const MatMul& op : products_with_relu) expect_exactly_as_chain(op, 3, cpu_algorithm("gemm"));
    expect_gelu_as_chain(MatMul{1, 70, 8, true, Nonlinearity::gelu}, 3, cpu_algorithm("gemm"));
    expect_gelu_as_chain(MatMul{4, 9, 8, false, Nonlinearity::gelu}, 5, cpu_algorithm("gemm"));
}

TEST_P(CpuFused, NormalizationShortcutAndReluAreTheThree) {
    for (const BatchNorm& op : norms()) {
        for (const std::int64_t batch : {1, 3}) expect_norm_as_chain(op, batch, cpu_algorithm("batchnorm"));
    }
    expect_norm_as_chain({70, 4, 4, true, true}, 9, cpu_algorithm("batchnorm"));     // more channels than go at a time
    expect_norm_as_chain({3, 80, 80, true, false}, 12, cpu_algorithm("batchnorm"));  // more values than the cache keeps
}

TEST_P(CpuFused, NormalizationOfValuesFarFromZeroLosesNothing) {
    // Around 1000, and the first sample around 1016: the mean is rounded to f32, 2^-24 of 1000, times at most
    // 4 / deviation, 4 / 2; beside it what small values err by, the square of the first sample's distance included.
    const BatchNorm op{5, 6, 7};
    const std::int64_t batch = 4;
    Tensors fused{op, batch, cpu_algorithm("batchnorm")};
    for (std::size_t i = 0; i < fused.src[0].size(); ++i) {
        fused.src[0][i] += i < fused.src[0].size() / batch ? 1016.0F : 1000.0F;
    }
    const double values = batch * 6 * 7;
    const double rounding = (values + 8) * 0x1p-24;
    const double mean = 1016 * 0x1p-24;
    expect_as_chain(fused, cpu_algorithm("batchnorm"), reference::backend(),
                    {.dst = 2 * mean + 20 * rounding,
                     .diff_src = 8 * mean + 48 * rounding,
                     .diff_weights = 4 * values * mean + 12 * values * rounding});
}

}  // namespace
}  // namespace rehearse::kernels
