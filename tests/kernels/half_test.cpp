// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers by every table of instructions: those of this CPU, and the same done number by number,
// rounded as the instruction rounds, so that the logic is tested where the instruction is absent.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/half/half.hpp"
#include "kernels/cpu/half/half_pack.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/stored.hpp"

namespace rehearse::kernels {
namespace {

using cpu::HalfSimd;
using cpu::HalfSums;

struct Instructions {
    const char* name;
    const HalfSimd* simd;  // nullptr: not on this CPU
    DataType type;
    bool sums_in_f16 = false, chunked = false;
};

void PrintTo(const Instructions& by, std::ostream* out) { *out << by.name; }

std::vector<Instructions> all_instructions() {
    return {{"EmulatedF16", &cpu::emulated_f16(HalfSums::f16), DataType::f16, true},
            {"EmulatedF16Chunked", &cpu::emulated_f16(HalfSums::chunked), DataType::f16, true, true},
            {"EmulatedBf16", &cpu::emulated_bf16(), DataType::bf16},
            {"NativeF16", cpu::native_f16(HalfSums::f16), DataType::f16, true},
            {"NativeF16Chunked", cpu::native_f16(HalfSums::chunked), DataType::f16, true, true},
            {"NativeBf16", cpu::native_bf16(), DataType::bf16}};
}

class Halves : public testing::TestWithParam<Instructions> {
protected:
    void SetUp() override {
        if (GetParam().simd == nullptr) GTEST_SKIP() << "this CPU has no such instructions";
    }
    void TearDown() override { omp_set_num_threads(1); }

    static std::unique_ptr<Kernel> prepared(const Op& op, Pass pass, std::int64_t batch) {
        const Problem problem{op, pass, batch, GetParam().type};
        const bool product = std::holds_alternative<MatMul>(op);
        return product ? half_product(problem, *GetParam().simd) : half_convolution(problem, *GetParam().simd);
    }

    static void run(Tensors& t, Pass pass) {
        const auto kernel = prepared(t.op, pass, t.batch);
        if (GetParam().type == DataType::f16) return StoredRun<Float16>(t).run(*kernel);
        StoredRun<BFloat16>(t).run(*kernel);
    }

    static std::vector<float> rounded_to_type(const std::vector<float>& values) {
        return GetParam().type == DataType::f16 ? rounded<Float16>(values) : rounded<BFloat16>(values);
    }
};

// -1, 0, 1: at most 2048 of their products have sums that f16 holds exactly, in whatever order.
void make_small(std::vector<float>& values) {
    for (float& value : values) value = static_cast<float>(static_cast<int>(value) % 2);
}

constexpr Window square(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1) {
    return {kernel, kernel, stride, stride, pad, pad, pad, pad, 1, 1};
}

std::vector<Op> awkward_ops() {
    return {Conv{1, 1, 1, 1, {}, 1, true},
            Conv{17, 6, 5, 13, {}, 1, true},
            Conv{67, 9, 11, 37, {}, 1, false},  // more channels than a vector or a panel, both prime
            Conv{3, 9, 11, 16, square(3, 1), 1, false},
            Conv{8, 5, 5, 16, square(1, 0, 2), 1, false},  // pixels that no output sees
            Conv{5, 9, 8, 7, square(1, 1, 2), 1, true},
            Conv{16, 9, 7, 32, square(3, 1, 2), 1, false},
            Conv{5, 7, 9, 19, {3, 3, 2, 1, 0, 1, 1, 2, 1, 1}, 1, true},
            Conv{4, 11, 10, 6, {5, 3, 3, 3, 4, 2, 4, 2, 1, 1}, 1, true},  // padding above half of the filter
            Conv{2, 23, 23, 3, square(11, 5), 1, false},                  // more taps than a chunk
            Conv{8, 7, 7, 12, {3, 3, 1, 1, 2, 2, 2, 2, 2, 2}, 2, true},
            Conv{6, 8, 8, 12, square(3, 1, 2), 6, true},
            Conv{4, 6, 5, 4, square(3, 1), 4, false},
            MatMul{1, 1, 1, true},
            MatMul{3, 5, 7, true},
            MatMul{17, 33, 65, false},
            MatMul{2, 70, 601, true}};  // more numbers of k than a block
}

TEST_P(Halves, SumSmallWholeNumbersExactly) {
    for (const int threads : {1, 3}) {
        omp_set_num_threads(threads);
        for (const Op& op : awkward_ops()) {
            for (const std::int64_t batch : {1, 3}) {
                SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, GetParam().type}));
                Tensors actual{op, batch, reference::backend()};
                make_small(actual.src[0]);
                make_small(actual.weights);
                make_small(actual.diff_dst);
                Tensors expected = actual;
                expected.run_forward_and_backward(reference::backend());
                for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) run(actual, pass);
                ASSERT_EQ(actual.dst, rounded_to_type(expected.dst));
                ASSERT_EQ(actual.diff_src[0], rounded_to_type(expected.diff_src[0]));
                ASSERT_EQ(actual.diff_weights, rounded_to_type(expected.diff_weights));
            }
        }
    }
}

// Numbers from -1 to 1 with as many digits as the type has.
void make_real(std::vector<float>& values, DataType type, std::uint64_t seed) {
    std::uint64_t state = seed;
    for (float& value : values) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        value = static_cast<float>(static_cast<double>(state >> 11) * 0x1p-52 - 1);
    }
    values = type == DataType::f16 ? rounded<Float16>(values) : rounded<BFloat16>(values);
}

struct Errors {
    double worst_share = 0;  // of the bound
    double square = 0, norm = 0;
};

// A sum of n numbers in precision u, in whatever order, errs by at most g(n) = n u / (1 - n u) of the sum of their
// magnitudes (Higham 2002, section 4.2); with fused multiply-adds the products bring no error of their own. Chunks of L
// in f16 whose K / L sums are added in f32 err by g16(L) + g32(K / L + 1); the result is rounded once more.
double bound(std::int64_t k, std::int64_t longest_chunk, const Instructions& by) {
    const auto g = [](double n, double u) { return n * u / (1 - n * u); };
    const double f32 = g(static_cast<double>(k) + 1, 0x1p-24);
    if (!by.sums_in_f16) return f32;
    const std::int64_t chunk = by.chunked ? std::min(k, longest_chunk) : k;
    return g(static_cast<double>(chunk), 0x1p-11) + f32;
}

Errors product_errors(const Instructions& by, std::int64_t k, Tensors& t) {
    const auto& op = std::get<MatMul>(t.op);
    Errors errors;
    for (std::int64_t i = 0; i < op.m; ++i) {
        for (std::int64_t j = 0; j < op.n; ++j) {
            double sum = 0;
            double magnitudes = 0;
            for (std::int64_t l = 0; l < k; ++l) {
                const double product = static_cast<double>(t.src[0][i * k + l]) * t.weights[l * op.n + j];
                sum += product;
                magnitudes += std::abs(product);
            }
            const double error = std::abs(t.dst[i * op.n + j] - sum);
            const double before = bound(k, cpu::half_chunk, by) * magnitudes;
            const double allowed = before + unit_roundoff(by.type) * (std::abs(sum) + before);
            errors.worst_share = std::max(errors.worst_share, error / allowed);
            errors.square += error * error;
            errors.norm += sum * sum;
        }
    }
    return errors;
}

TEST_P(Halves, ErrByNoMoreThanTheDerivedBound) {
    for (const std::int64_t k : {1, 63, 64, 65, 700}) {
        Tensors t{MatMul{5, 70, k, false}, 1, reference::backend()};
        make_real(t.src[0], GetParam().type, 1);
        make_real(t.weights, GetParam().type, 2);
        run(t, Pass::forward);
        EXPECT_LE(product_errors(GetParam(), k, t).worst_share, 1) << "k = " << k;
    }
}

// Were sums kept in a better type than is said, 700 products would not err by so much: the rounding of the result alone
// is below u, a random walk of n steps in f16 around u sqrt(n / 6) (the n-th partial sum is of size sqrt(n)).
TEST_P(Halves, SumInTheTypeThatIsSaid) {
    if (!GetParam().sums_in_f16) GTEST_SKIP() << "sums are in f32";
    Tensors t{MatMul{8, 70, 700, false}, 1, reference::backend()};
    make_real(t.src[0], DataType::f16, 1);
    make_real(t.weights, DataType::f16, 2);
    run(t, Pass::forward);
    const Errors errors = product_errors(GetParam(), 700, t);
    const double relative = std::sqrt(errors.square / errors.norm);
    const double expected = 0x1p-11 * std::sqrt((GetParam().chunked ? 64 : 700) / 6.0);
    EXPECT_GT(relative, expected / 2);
    EXPECT_LT(relative, expected * 2);
}

INSTANTIATE_TEST_SUITE_P(By, Halves, testing::ValuesIn(all_instructions()), testing::PrintToStringParamName());

// The nearest of all f16 numbers to a b + c, which 64 bits of a long double hold exactly for these operands: their
// exponents differ by at most 20.
Float16 nearest(long double exact) {
    Float16 best = Float16(static_cast<float>(exact));
    for (int step = -1; step <= 1; step += 2) {
        const Float16 other = Float16::of_bits(static_cast<std::uint16_t>(best.bits + step));
        const long double far = std::abs(static_cast<float>(best) - exact);
        const long double near = std::abs(static_cast<float>(other) - exact);
        if (near < far || (near == far && other.bits % 2 == 0)) best = other;
    }
    return best;
}

TEST(EmulatedF16, RoundsAMultiplyAddOnce) {
    const HalfSimd& simd = cpu::emulated_f16(HalfSums::f16);
    std::uint64_t state = 7;
    const auto next = [&] {
        state = state * 6364136223846793005U + 1442695040888963407U;
        const auto bits = static_cast<std::uint16_t>(state >> 48);  // exponents from 2^-5 to 2^4
        return Float16::of_bits(static_cast<std::uint16_t>((bits & 0x83FF) | (10 + (bits >> 10) % 10) << 10));
    };
    const cpu::TapAt here{0, 0};
    std::vector<std::uint16_t> b(static_cast<std::size_t>(simd.columns));
    std::vector<float> c(b.size());
    for (int round = 0; round < 200; ++round) {
        const Float16 a = next();
        const std::uint32_t unit = a.bits | std::uint32_t{a.bits} << 16;
        for (std::uint16_t& each : b) each = next().bits;
        for (float& each : c) each = static_cast<float>(next());
        const std::vector<float> before = c;
        simd.multiply(1, {&unit, 0, b.data(), 0, &here, 1, 1, c.data(), simd.columns, true});
        for (std::size_t i = 0; i < b.size(); ++i) {
            const long double product =
                static_cast<long double>(static_cast<float>(a)) * static_cast<float>(Float16::of_bits(b[i]));
            ASSERT_EQ(c[i], static_cast<float>(nearest(product + before[i])));
        }
    }
}

TEST(NativeF16, GivesTheBitsOfTheEmulatedOne) {
    for (const HalfSums sums : {HalfSums::chunked, HalfSums::f16}) {
        if (cpu::native_f16(sums) == nullptr) GTEST_SKIP() << "this CPU has no AVX512-FP16";
        Tensors native{Conv{19, 9, 7, 23, square(3, 1), 1, true}, 2, reference::backend()};
        make_real(native.src[0], DataType::f16, 1);
        make_real(native.weights, DataType::f16, 2);
        Tensors emulated = native;
        const Problem problem{native.op, Pass::forward, 2, DataType::f16};
        StoredRun<Float16>(native).run(*cpu::half_convolution(problem, *cpu::native_f16(sums)));
        StoredRun<Float16>(emulated).run(*cpu::half_convolution(problem, cpu::emulated_f16(sums)));
        EXPECT_EQ(native.dst, emulated.dst);
    }
}

TEST(Transpose, OfWordsAndUnits) {
    const auto expect_transposed = [](auto element) {
        using Element = decltype(element);
        for (const auto& [rows, columns] : {std::pair{1, 1}, {8, 8}, {14, 65}, {33, 7}, {4, 16}}) {
            std::vector<Element> in(static_cast<std::size_t>(rows * (columns + 3)));
            std::iota(in.begin(), in.end(), Element{1});
            std::vector<Element> out(static_cast<std::size_t>(columns * (rows + 2)), Element{0});
            cpu::transpose(in.data(), columns + 3, rows, columns, out.data(), rows + 2);
            for (int j = 0; j < columns; ++j) {
                for (int i = 0; i < rows + 2; ++i) {
                    const Element expected = i < rows ? in[i * (columns + 3) + j] : Element{0};
                    ASSERT_EQ(out[j * (rows + 2) + i], expected) << rows << "x" << columns;
                }
            }
        }
    };
    expect_transposed(std::uint16_t{});
    expect_transposed(std::uint32_t{});
}

}  // namespace
}  // namespace rehearse::kernels
