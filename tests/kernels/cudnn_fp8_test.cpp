// SPDX-License-Identifier: Apache-2.0
// What cuBLASLt is told of products of 8-bit factors, carried out here on what our kernels make of the tensors, against
// the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cudnn/describe_fp8.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/cuda_host.hpp"
#include "tests/kernels/tensors.hpp"
#if REHEARSE_HAS_CUDNN
#include "kernels/cudnn/backends.hpp"
#include "tests/kernels/stored.hpp"
#endif

namespace rehearse::kernels::cudnn {
namespace {

// Codes of 8 bits as numbers: table 1 of Micikevicius et al. 2022.
double number_of(int code, cuda::Fp8 format) {
    const int fraction = format == cuda::Fp8::e4m3 ? 3 : 2, bias = format == cuda::Fp8::e4m3 ? 7 : 15;
    const int exponent = (code & 0x7F) >> fraction, bits = code & ((1 << fraction) - 1);
    const double size = exponent == 0 ? std::ldexp(bits, 1 - bias - fraction)
                                      : std::ldexp(bits + (1 << fraction), exponent - bias - fraction);
    return code > 0x7F ? -size : size;
}

// A factor as cuBLASLt finds it: its numbers times what it is told to multiply them by.
std::vector<double> in_8_bits(const Fp8Factor& of, const std::vector<float>& tensor) {
    cuda::HostEngine engine;
    std::vector<float> from = tensor, room(cuda::fp8_parts);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(of.bytes()));
    float inverse = 0;
    cuda::ToFp8 task;
    task.from = {from.data(), DataType::f32}, task.to = codes.data(), task.inverse = &inverse;
    task.lines = of.lines, task.length = of.length, task.pitch = of.pitch;
    task.format = of.format, task.turned = of.turned;
    cuda::run_to_fp8(engine, task, room.data());
    std::vector<double> numbers;
    for (const int code : codes) numbers.push_back(number_of(code, of.format) * inverse);
    return numbers;
}

// Whole numbers up to 4 lose nothing in either format: C = A^T B as described is the reference's, in every pass.
TEST(Fp8Product, IsTheReferencesDenseLayerInEveryPass) {
    for (const bool tied : {false, true}) {
        for (const MatMul& op : {MatMul{1, 1, 8, false}, MatMul{3, 24, 16, true}, MatMul{2, 8, 40, true}}) {
            MatMul own = op;
            own.tied = tied;
            own.bias = op.bias && !tied;
            Tensors t{own, 4, reference::backend()};
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                SCOPED_TRACE(to_string(Problem{own, pass, 4}));
                t.run(reference::backend(), pass);
                const Fp8Product p = fp8_product(own, pass, 4);
                const auto factor = [&](Factor which) {
                    std::vector<float> all = which == Factor::src       ? t.src[0]
                                             : which == Factor::weights ? t.weights
                                                                        : t.diff_dst;
                    if (which == Factor::weights) all.resize(static_cast<std::size_t>(own.k * own.n));
                    return all;
                };
                EXPECT_EQ(p.a.format == cuda::Fp8::e5m2, p.a.which == Factor::diff_dst);
                EXPECT_EQ(p.b.format == cuda::Fp8::e5m2, p.b.which == Factor::diff_dst);
                ASSERT_EQ(p.a.rows(), p.m);
                ASSERT_EQ(p.b.rows(), p.n);
                const std::vector<double> a = in_8_bits(p.a, factor(p.a.which)), b = in_8_bits(p.b, factor(p.b.which));
                const auto& right = pass == Pass::forward         ? t.dst
                                    : pass == Pass::backward_data ? t.diff_src[0]
                                                                  : t.diff_weights;
                for (std::int64_t i = 0; i < p.m; ++i) {
                    for (std::int64_t j = 0; j < p.n; ++j) {
                        double sum =
                            p.bias == BiasPart::added ? t.weights[static_cast<std::size_t>(own.k * own.n + i)] : 0;
                        for (std::int64_t l = 0; l < p.k; ++l)
                            sum += a[static_cast<std::size_t>(i * p.a.pitch + l)] *
                                   b[static_cast<std::size_t>(j * p.b.pitch + l)];
                        ASSERT_EQ(sum, right[static_cast<std::size_t>(i + j * p.m)]) << i << ", " << j;
                    }
                }
            }
        }
    }
}

// cuBLASLt's documentation: e5m2 by e5m2 is no product, rows of each matrix begin at whole 16 bytes.
TEST(Fp8Product, IsWhatTheDocumentationAllows) {
    for (const MatMul& op : {MatMul{128, 1024, 4096, true}, MatMul{7, 33, 24, false}, MatMul{1, 2048, 1000, true}}) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            const Problem problem{op, pass, 3, DataType::f16};
            const Fp8Product p = fp8_product(op, pass, 3);
            EXPECT_FALSE(p.a.format == cuda::Fp8::e5m2 && p.b.format == cuda::Fp8::e5m2);
            EXPECT_EQ(p.a.pitch % 16, 0);
            EXPECT_EQ(p.b.pitch, p.a.pitch);
            EXPECT_EQ(p.k, p.a.pitch);
            EXPECT_EQ(fp8_refusal(problem).empty(), p.m * 2 % 16 == 0) << to_string(problem);
        }
    }
    EXPECT_NE(fp8_refusal({MatMul{8, 8, 8}, Pass::forward, 1, DataType::f32}), "");
    EXPECT_NE(fp8_refusal({MatMul{8, 30522, 8}, Pass::forward, 1, DataType::f16}), "");
}

#if REHEARSE_HAS_CUDNN
TEST(Fp8Product, IsDescribedToCublasLt) {
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        for (const DataType type : {DataType::f16, DataType::bf16})
            EXPECT_EQ(refused_fp8({MatMul{16, 64, 32, true}, pass, 2, type}), "");
    }
    if (cuda::gpu().refusal().empty()) return;
    for (const auto& backend : products_fp8(cuda::gpu())) {
        EXPECT_NE(backend->supports({MatMul{16, 64, 32}, Pass::forward, 1, DataType::f16}).reason.find("no GPU"),
                  std::string::npos);
    }
}

// Whole numbers whose sums are exact in f16: to the last bit, where there is a GPU that has such products.
TEST(Fp8Product, IsExactOnAGpu) {
    if (!cuda::gpu().refusal().empty()) GTEST_SKIP() << cuda::gpu().refusal();
    if (cuda::gpu().capability() < 89) GTEST_SKIP() << "8-bit products need compute capability 8.9";
    const MatMul op{3, 40, 32, true};
    for (const auto& device : products_fp8(cuda::gpu())) {
        const auto backend = cuda::staged(*device, cuda::gpu());
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            const Problem problem{op, pass, 16, DataType::f16};
            SCOPED_TRACE(full_name(*backend) + " " + to_string(problem));
            ASSERT_TRUE(backend->supports(problem).yes) << backend->supports(problem).reason;
            Tensors expected{op, 16, reference::backend()}, actual{op, 16, reference::backend()};
            run_stored<Float16>(expected, reference::backend(), pass);
            run_stored<Float16>(actual, *backend, pass);
            const auto written = [&](const Tensors& t) {
                return pass == Pass::forward ? t.dst : pass == Pass::backward_data ? t.diff_src[0] : t.diff_weights;
            };
            EXPECT_EQ(written(actual), written(expected));
        }
    }
}
#endif

}  // namespace
}  // namespace rehearse::kernels::cudnn
