// SPDX-License-Identifier: Apache-2.0
// Our own algorithms, compiled for each SIMD target that this machine has, against the reference. Inputs are whole
// numbers of at most 4: below 2^20 products the sums are exact in f32, so nothing but equality will do.
#include <gmock/gmock.h>
#include <hwy/highway.h>
#include <omp.h>

#include <array>
#include <stdexcept>
#include <string>

#include "core/error.hpp"
#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Backend& algorithm(std::string_view name) {
    for (const Backend* backend : backends()) {
        if (backend->name() == "cpu" && backend->algorithm() == name) return *backend;
    }
    throw std::logic_error("no such algorithm in this build: " + std::string{name});
}

// Runs every test as if the processor had nothing better than one SIMD target.
class Cpu : public testing::TestWithParam<std::int64_t> {
protected:
    void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
    void TearDown() override {
        omp_set_num_threads(threads_);
        hwy::SetSupportedTargetsForTest(0);
    }

private:
    int threads_ = omp_get_max_threads();
};

std::vector<std::int64_t> targets() {
    std::vector<std::int64_t> found;
    for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
        found.push_back(left & -left);
    }
    return found;
}

INSTANTIATE_TEST_SUITE_P(EachTarget, Cpu, testing::ValuesIn(targets()),
                         [](const auto& target) { return std::string{hwy::TargetName(target.param)}; });

void expect_same(const Op& op, std::int64_t batch, const Backend& backend) {
    SCOPED_TRACE(full_name(backend) + ", " + to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    Tensors expected{op, batch, reference::backend()};
    Tensors actual{op, batch, backend};
    expected.run_forward_and_backward(reference::backend());
    ASSERT_NO_FATAL_FAILURE(actual.run_forward_and_backward(backend));
    EXPECT_EQ(actual.dst, expected.dst);
    EXPECT_EQ(actual.diff_src, expected.diff_src);
    EXPECT_EQ(actual.diff_weights, expected.diff_weights);
}

TEST_P(Cpu, MultipliesDenseLayersExactly) {
    for (const bool bias : {false, true}) {
        for (const auto& [m, n, k, batch] : std::vector<std::array<std::int64_t, 4>>{
                 {1, 1, 1, 1}, {1, 7, 5, 3}, {3, 33, 17, 2}, {1, 100, 64, 13}, {1, 31, 300, 29}, {2, 129, 513, 31}}) {
            expect_same(MatMul{m, n, k, bias}, batch, algorithm("gemm"));
        }
    }
}

constexpr Window square(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1, std::int64_t dilation = 1) {
    return {kernel, kernel, stride, stride, pad, pad, pad, pad, dilation, dilation};
}

// Channels, height, width, filters, window, groups, bias. Shapes at which blocks of channels, tiles of pixels or the
// padding leave something over.
const std::vector<Conv> convolutions{
    {1, 1, 1, 1, {}, 1, true},                                 // all ones
    {16, 5, 7, 8, {}, 1, true},                                // 1 x 1
    {35, 9, 11, 66, square(1, 0, 2), 1, false},                // 1 x 1, strided
    {3, 13, 11, 5, square(3, 1), 1, true},                     // odd sizes, few channels
    {17, 7, 7, 37, square(3, 1), 1, false},                    // prime channels
    {32, 14, 14, 64, square(3, 1), 1, false},                  // whole blocks of channels
    {4, 5, 5, 40, square(3, 2), 1, true},                      // padding above half the filter
    {5, 3, 4, 3, square(2, 2), 1, false},                      // windows wholly in the padding
    {7, 16, 13, 9, square(3, 1, 3), 1, true},                  // stride 3
    {3, 29, 31, 18, square(7, 3, 2), 1, false},                // a first layer
    {2, 11, 10, 2, square(2, 0, 4), 1, false},                 // pixels that no window sees
    {6, 12, 15, 8, square(3, 2, 1, 2), 2, true},               // dilated, in groups
    {20, 9, 17, 12, square(3, 3, 2, 3), 4, true},              // dilated and strided, in groups
    {19, 8, 10, 19, square(3, 1), 19, true},                   // groups = channels
    {33, 9, 9, 33, square(5, 2, 2), 33, false},                // the same, strided
    {5, 6, 7, 15, square(3, 1, 2), 5, true},                   // the same, three filters a channel
    {4, 6, 9, 5, {3, 2, 2, 1, 0, 1, 1, 2, 1, 1}, 1, true},     // lopsided padding and strides
    {9, 8, 20, 11, {1, 7, 1, 2, 0, 3, 0, 3, 1, 1}, 1, false},  // 1 x 7
    {8, 8, 8, 21, {5, 1, 1, 1, 4, 0, 0, 0, 1, 1}, 1, false},   // padding on one side
    {2, 3, 70, 34, square(3, 1), 1, true},                     // long rows
    {34, 14, 14, 34, square(3, 1), 34, false},                 // groups = channels, a row in one block of pixels
    {18, 7, 7, 18, square(7, 3), 18, true},                    // the same, taps in several blocks
    {20, 15, 17, 20, square(3, 1, 2), 20, true},               // the same, rows in two blocks, strided
    {16, 6, 10, 16, square(1, 0), 16, false}};                 // the same, one tap

TEST_P(Cpu, ConvolvesExactly) {
    for (const char* name : {"direct", "im2col"}) {
        for (const Conv& op : convolutions) {
            for (const std::int64_t batch : {1, 3}) expect_same(op, batch, algorithm(name));
        }
    }
}

// Kernel, stride and dilation of a volume alike in all directions; padding, one plane more of it in front.
Conv volume(std::int64_t channels, std::int64_t size, std::int64_t filters, Window w, std::int64_t groups) {
    w.kernel_d = w.kernel_h;
    w.stride_d = w.stride_h;
    w.dilation_d = w.dilation_h;
    w.pad_front = w.pad_top + 1;
    w.pad_back = w.pad_bottom;
    return conv3d(channels, size, size + 1, size + 2, filters, w, groups, true);
}

const std::vector<Conv> volumes{
    volume(3, 5, 35, square(3, 1), 1),         // filters in three blocks
    volume(35, 4, 5, square(3, 1, 2), 1),      // channels in three blocks, strided
    volume(4, 6, 6, square(2, 2, 3), 2),       // pixels that no window reaches
    volume(18, 5, 18, square(3, 2, 1, 2), 18)  // groups = channels, dilated
};

TEST_P(Cpu, ConvolvesVolumesExactly) {
    for (const char* name : {"direct", "im2col"}) {
        for (const Conv& op : volumes) expect_same(op, 2, algorithm(name));
    }
}

// Images of which one at a time is packed (512 Ki floats), and column matrices in several tiles.
const std::vector<Conv> large{{130, 64, 64, 3, square(3, 1), 1, true}, {3, 64, 64, 130, square(3, 1), 1, false}};

TEST_P(Cpu, ConvolvesImagesTooLargeToBePackedAtOnce) {
    for (const char* name : {"direct", "im2col"}) {
        for (const Conv& op : large) expect_same(op, 2, algorithm(name));
    }
}

TEST_P(Cpu, SharesItsWorkAmongThreads) {
    omp_set_num_threads(3);
    for (const char* name : {"direct", "im2col"}) {
        // 66 filters, 40 filters with a bias, dilated groups, groups = channels, and one sample for three threads.
        for (const std::size_t i : {2, 6, 11, 13}) expect_same(convolutions[i], 1, algorithm(name));
        for (const Conv& op : volumes) expect_same(op, 1, algorithm(name));
        expect_same(large[0], 1, algorithm(name));
    }
    expect_same(MatMul{1, 129, 300, true}, 5, algorithm("gemm"));
}

TEST_P(Cpu, RunsAPreparedKernelAgain) {
    for (const char* name : {"direct", "im2col"}) {
        for (const Conv& op : {convolutions[4], convolutions[13]}) {
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                const auto kernel = algorithm(name).prepare({op, pass, 2, DataType::f32});
                for (const std::uint64_t seed : {11, 12}) {
                    Tensors actual{op, 2, algorithm(name)};
                    actual.src[0] = whole_numbers(static_cast<std::int64_t>(actual.src[0].size()), seed);
                    actual.diff_dst = whole_numbers(static_cast<std::int64_t>(actual.diff_dst.size()), seed + 1);
                    Tensors expected = actual;
                    kernel->run(actual.buffers());
                    expected.run(reference::backend(), pass);
                    if (pass == Pass::forward) {
                        EXPECT_EQ(actual.dst, expected.dst);
                    }
                    if (pass == Pass::backward_data) {
                        EXPECT_EQ(actual.diff_src, expected.diff_src);
                    }
                    if (pass == Pass::backward_weights) {
                        EXPECT_EQ(actual.diff_weights, expected.diff_weights);
                    }
                }
            }
        }
    }
}

// C {m, n} at stride ldc, summed as whole numbers.
std::vector<float> product(const cpu::GemmShape& s, const std::vector<float>& a, const std::vector<float>& b,
                           std::vector<float> c, std::int64_t ldc, bool accumulate) {
    for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
            std::int64_t sum = accumulate ? static_cast<std::int64_t>(c[i * ldc + j]) : 0;
            for (std::int64_t l = 0; l < s.k; ++l) sum += static_cast<std::int64_t>(a[i * s.k + l] * b[l * s.n + j]);
            c[i * ldc + j] = static_cast<float>(sum);
        }
    }
    return c;
}

std::vector<float> transposed(const std::vector<float>& matrix, std::int64_t rows, std::int64_t columns) {
    std::vector<float> out(matrix.size());
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) out[j * rows + i] = matrix[i * columns + j];
    }
    return out;
}

// 281 rows, 1100 columns and 257 deep: one more than a block, and with little in the other directions.
const std::vector<cpu::GemmShape> shapes{{1, 1, 1},   {14, 32, 1},   {15, 33, 2},   {29, 65, 31}, {64, 49, 257},
                                         {281, 3, 9}, {2, 1100, 11}, {13, 31, 600}, {7, 5, 3}};

TEST_P(Cpu, MultipliesMatricesHoweverTheyLie) {
    for (const cpu::GemmShape& s : shapes) {
        SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k);
        const std::int64_t ldc = s.n + 3;
        const auto a = whole_numbers(s.m * s.k, 1);
        const auto b = whole_numbers(s.k * s.n, 2);
        const auto a_transposed = transposed(a, s.m, s.k);
        const auto b_transposed = transposed(b, s.k, s.n);
        std::vector<float> workspace(cpu::gemm_workspace(s));
        for (const bool accumulate : {false, true}) {
            const auto before = whole_numbers(s.m * ldc, 3);
            const auto expected = product(s, a, b, before, ldc, accumulate);
            for (const cpu::MatrixView view_a : {cpu::MatrixView{a.data(), s.k, 1}, {a_transposed.data(), 1, s.m}}) {
                for (const cpu::MatrixView view_b :
                     {cpu::MatrixView{b.data(), s.n, 1}, {b_transposed.data(), 1, s.k}}) {
                    auto c = before;
                    cpu::gemm(s, view_a, view_b, c.data(), ldc, accumulate, workspace.data());
                    EXPECT_EQ(c, expected);
                }
            }
        }
    }
}

TEST_P(Cpu, TheWorkspaceOfAProductIsEnoughForSmallerOnes) {
    // Cut into even pieces of at most 256 and 280: two of 160, one of 256; two of 150, one of 280.
    EXPECT_GE(cpu::gemm_workspace({3, 396, 320}), cpu::gemm_workspace({3, 396, 256}));
    EXPECT_GE(cpu::gemm_workspace({300, 64, 64}), cpu::gemm_workspace({280, 64, 64}));
}

TEST_P(Cpu, MultipliesPackedMatrices) {
    for (const cpu::GemmShape& s : shapes) {
        SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k);
        const auto a = whole_numbers(s.m * s.k, 1);
        const auto b = whole_numbers(s.k * s.n, 2);
        std::vector<float> packed_a(cpu::packed_a_floats(s.m, s.k));
        std::vector<float> packed_b(cpu::packed_b_floats(s.n, s.k));
        cpu::pack_a(s, {a.data(), s.k, 1}, packed_a.data());
        cpu::pack_b(s, {b.data(), s.n, 1}, packed_b.data());
        for (const bool accumulate : {false, true}) {
            auto c = whole_numbers(s.m * s.n, 3);
            const auto expected = product(s, a, b, c, s.n, accumulate);
            cpu::gemm_packed(s, packed_a.data(), packed_b.data(), c.data(), s.n, accumulate);
            EXPECT_EQ(c, expected);
        }
    }
}

TEST(ChooseAnAlgorithm, RunsWhatItCanAndLeavesTheRestToTheNextInTheList) {
    const Backend& gemm = algorithm("gemm");
    EXPECT_EQ(&choose(MatMul{1, 5, 4}, 2, DataType::f32, "cpu", "gemm"), &gemm);
    EXPECT_EQ(&choose(MatMul{1, 5, 4}, 2, DataType::f32, "", "gemm"), &gemm);
    const Op softmax = Softmax{4};  // no algorithm of ours
    EXPECT_EQ(&choose(softmax, 2, DataType::f32, "cpu", "gemm"), &choose(softmax, 2, DataType::f32));
    EXPECT_EQ(&choose(softmax, 2, DataType::f32, "cpu"), &choose(softmax, 2, DataType::f32));
    EXPECT_EQ(choose(softmax, 2, DataType::f32, "reference").name(), "reference");
}

TEST(ChooseAnAlgorithm, TakesAFamilysNameForItsFirst) {
    const Conv op{8, 9, 9, 8, square(3, 1), 1, false};
    const Backend& winograd = choose(op, 2, DataType::f32, "cpu", "winograd");
    EXPECT_EQ(&winograd, &algorithm("winograd4"));
    EXPECT_TRUE(is_algorithm(algorithm("winograd2"), "winograd"));
    EXPECT_FALSE(is_algorithm(algorithm("winograd2"), "winograd4"));
    EXPECT_FALSE(is_algorithm(algorithm("direct-f16"), "direct"));
    EXPECT_FALSE(is_algorithm(algorithm("gemm"), ""));
}

TEST(ChooseAnAlgorithm, NamesThoseThereAre) {
    const Op op = MatMul{1, 5, 4};
    EXPECT_THAT([&] { (void)choose(op, 1, DataType::f32, "cpu", "gem"); },
                ThrowsMessage<InputError>(AllOf(HasSubstr("unknown algorithm 'gem'"), HasSubstr("backend 'cpu' has:"),
                                                HasSubstr("did you mean 'gemm'"))));
    EXPECT_THAT([&] { (void)choose(op, 1, DataType::f32, "reference", "gemm"); },
                ThrowsMessage<InputError>(HasSubstr("backend 'reference' has none to choose from")));
    EXPECT_THAT(
        [&] {
            (void)choose(Unknown{"Erf", 4, 0, {4}}, 1, DataType::f32, "cpu");
        },
        ThrowsMessage<InputError>(HasSubstr("at batch 1: 'Erf' is an unknown operator")));
}

}  // namespace
}  // namespace rehearse::kernels
