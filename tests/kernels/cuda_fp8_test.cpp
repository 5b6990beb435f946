// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits: each code decoded as the formats are defined, roundings to the nearest of them by looking at all,
// and, where the toolkit is there, NVIDIA's own conversion; scaled and laid matrices number by number.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/points.hpp"
#include "tests/kernels/cuda_host.hpp"
#if REHEARSE_HAS_CUDA_FP8
#include <cuda_fp8.h>
#endif

namespace rehearse::kernels::cuda {
namespace {

// Micikevicius et al. 2022, table 1: e4m3 has bias 7 and no number at S.1111.111; e5m2 is IEEE 754's with bias 15.
double decoded(int code, Fp8 format) {
    const int fraction_bits = format == Fp8::e4m3 ? 3 : 2, bias = format == Fp8::e4m3 ? 7 : 15;
    const int exponent = (code & 0x7F) >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
    const double unit = std::ldexp(1.0, -fraction_bits);
    const double size =
        exponent == 0 ? std::ldexp(fraction * unit, 1 - bias) : std::ldexp(1 + fraction * unit, exponent - bias);
    return code > 0x7F ? -size : size;
}
int greatest(Fp8 format) { return format == Fp8::e4m3 ? 0x7E : 0x7B; }

// The nearest code of the sign; of two the even one.
int nearest(float value, Fp8 format) {
    const int sign = std::signbit(value) ? 0x80 : 0;
    if (std::abs(value) >= largest(format)) return sign | greatest(format);
    int best = 0;
    for (int code = 0; code <= greatest(format); ++code) {
        const double here = std::abs(decoded(code, format) - std::abs(value));
        const double there = std::abs(decoded(best, format) - std::abs(value));
        if (here < there || (here == there && code % 2 == 0)) best = code;
    }
    return sign | best;
}

// Every code, what lies half-way between two and just beside, and numbers far too small and too large.
std::vector<float> telling(Fp8 format) {
    std::vector<float> values{0.0F, 1e-30F, 1e-9F, 1e6F, 1e30F, std::numeric_limits<float>::denorm_min()};
    for (int code = 0; code <= greatest(format); ++code) {
        const auto here = static_cast<float>(decoded(code, format));
        const auto next = static_cast<float>(code < greatest(format) ? decoded(code + 1, format) : 1.0625 * here);
        const float middle = (here + next) / 2;
        for (const float value : {here, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)})
            values.push_back(value);
    }
    const std::size_t positive = values.size();
    for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
    return values;
}

TEST(Fp8Numbers, AreTheNearest) {
    for (const Fp8 format : {Fp8::e4m3, Fp8::e5m2}) {
        for (const float value : telling(format))
            EXPECT_EQ(to_fp8(value, format), nearest(value, format)) << value << " in " << static_cast<int>(format);
        EXPECT_EQ(decoded(greatest(format), format), largest(format));
        for (const float none : {INFINITY, -INFINITY, NAN}) EXPECT_EQ(to_fp8(none, format) & 0x7F, 0x7F);
    }
}

TEST(Fp8Numbers, AreNvidias) {
#if REHEARSE_HAS_CUDA_FP8
    for (const Fp8 format : {Fp8::e4m3, Fp8::e5m2}) {
        const auto kind = format == Fp8::e4m3 ? __NV_E4M3 : __NV_E5M2;
        for (const float value : telling(format))
            EXPECT_EQ(to_fp8(value, format), __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kind)) << value;
    }
#else
    GTEST_SKIP() << "built without CUDA";
#endif
}

TEST(Fp8Scale, IsTheLargestPowerOfTwoWithWhichATensorFits) {
    for (const Fp8 format : {Fp8::e4m3, Fp8::e5m2}) {
        for (const float most : {1e-20F, 0.3F, 1.0F, 1.75F, 1.7500001F, 1.9F, 4.0F, 448.0F, 449.0F, 65504.0F, 1e30F}) {
            const float scale = fp8_scale(most, format);
            int exponent = 0;
            EXPECT_EQ(std::frexp(scale, &exponent), 0.5F) << "a power of two";
            EXPECT_LE(most * scale, largest(format)) << most;
            EXPECT_GT(2 * most * scale, largest(format)) << most;
        }
        for (const float none : {0.0F, INFINITY, NAN}) EXPECT_EQ(fp8_scale(none, format), 1);
        EXPECT_EQ(1 / fp8_scale(1e-44F, format), 0x1p-126F) << "no further than what can be divided by again";
    }
}

struct Laid {
    std::vector<std::uint8_t> codes;
    float inverse = 0;
};

Laid lay(Engine& engine, const std::vector<float>& matrix, DataType type, ToFp8 task) {
    const auto size = static_cast<std::int64_t>(matrix.size());
    std::vector<std::uint16_t> halves;
    for (const float value : matrix)
        halves.push_back(type == DataType::f16 ? Float16{value}.bits : BFloat16{value}.bits);
    const bool wide = type == DataType::f32;
    const void* const bytes = wide ? static_cast<const void*>(matrix.data()) : halves.data();
    const std::size_t count = static_cast<std::size_t>(size) * (wide ? 4 : 2);
    const Memory from = engine.allocate(count);
    engine.copy_in(from.get(), bytes, count);
    Laid laid;
    laid.codes.resize(static_cast<std::size_t>((task.turned ? task.length : task.lines) * task.pitch));
    const Memory to = engine.allocate(laid.codes.size()), inverse = engine.allocate(16);
    const Memory room = engine.allocate(fp8_parts * sizeof(float));
    task.from = {from.get(), type}, task.to = reinterpret_cast<std::uint8_t*>(to.get());
    task.inverse = reinterpret_cast<float*>(inverse.get());
    run_to_fp8(engine, task, reinterpret_cast<float*>(room.get()));
    engine.finish();
    engine.copy_out(laid.codes.data(), to.get(), laid.codes.size());
    engine.copy_out(&laid.inverse, inverse.get(), sizeof laid.inverse);
    return laid;
}

void expect_laid(Engine& engine) {
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
        for (const Fp8 format : {Fp8::e4m3, Fp8::e5m2}) {
            for (const auto& [lines, length] :
                 std::vector<std::pair<int, int>>{{1, 1}, {3, 5}, {64, 64}, {67, 130}, {130, 72}, {16, 4096}}) {
                for (const bool turned : {false, true}) {
                    std::vector<float> matrix;
                    for (int i = 0; i < lines * length; ++i)
                        matrix.push_back(0.25F * static_cast<float>(i * 37 % 101 - 50));  // exact in 16 bits
                    ToFp8 task;
                    task.lines = lines, task.length = length, task.format = format, task.turned = turned;
                    const int across = turned ? lines : length;
                    task.pitch = divide_up(across, 16) * 16;
                    const Laid laid = lay(engine, matrix, type, task);
                    float most = 0;
                    for (const float value : matrix) most = std::max(most, std::abs(value));
                    const float scale = fp8_scale(most, format);
                    ASSERT_EQ(laid.inverse, 1 / scale);
                    for (int row = 0; row < (turned ? length : lines); ++row) {
                        for (int at = 0; at < task.pitch; ++at) {
                            const int from = turned ? at * length + row : row * length + at;
                            const int right = at < across ? nearest(matrix[from] * scale, format) : 0;
                            ASSERT_EQ(laid.codes[row * task.pitch + at] & 0x7F, right & 0x7F)
                                << lines << " x " << length << (turned ? " turned" : "") << " row " << row << " at "
                                << at;
                            if ((right & 0x7F) != 0) {
                                ASSERT_EQ(laid.codes[row * task.pitch + at], right);
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST(Fp8Matrix, IsScaledRoundedAndLaidRowByRow) {
    HostEngine host;
    expect_laid(host);
}

TEST(Fp8Matrix, KeepsWhatIsNoNumberInSight) {
    HostEngine host;
    ToFp8 task;
    task.lines = 2, task.length = 3, task.pitch = 16;
    const Laid laid = lay(host, {1, INFINITY, 3, NAN, 5, 6}, DataType::f32, task);
    EXPECT_EQ(laid.inverse, 1);
    EXPECT_EQ(laid.codes[1], 0x7F);
    EXPECT_EQ(laid.codes[16] & 0x7F, 0x7F);
    EXPECT_EQ(laid.codes[18], nearest(6, Fp8::e4m3));
}

TEST(Fp8Matrix, IsTheSameOnAGpu) {
#if REHEARSE_HAS_CUDA
    if (!gpu().refusal().empty()) GTEST_SKIP() << gpu().refusal();
    expect_laid(gpu());
#else
    GTEST_SKIP() << "built without CUDA";
#endif
}

}  // namespace
}  // namespace rehearse::kernels::cuda
