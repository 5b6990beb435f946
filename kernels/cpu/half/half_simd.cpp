// SPDX-License-Identifier: Apache-2.0
// Which instructions this CPU has, and the same in plain C++.
#include "kernels/cpu/half/half_simd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/half.hpp"
#include "kernels/cpu/half/half_native.hpp"
#include "kernels/cpu/half/half_tile_inl.hpp"
#include "kernels/instructions.hpp"

namespace rehearse::kernels::cpu {
namespace {

// A sum or product of f16 numbers that is exact in double, or off by less than matters here, rounded once to f16.
// Adding and taking away 1.5 * 2^52 units rounds to whole units, ties to even; the unit is that of the result.
Float16 round_to_f16(double value) {
    if (!(std::abs(value) < 65520)) return Float16(static_cast<float>(value));  // infinity, NaN
    const auto biased = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7FF);
    const std::int64_t exponent = std::max<std::int64_t>(biased - 1023, -14);
    const auto shift =
        std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023 + 42) << 52 | std::uint64_t{1} << 51);
    return Float16(static_cast<float>(std::copysign((value + shift) - shift, value)));
}

// The i-th 16 bits of units side by side.
std::uint16_t word(std::uint32_t unit, int i) { return static_cast<std::uint16_t>(i % 2 == 0 ? unit : unit >> 16); }

void zip_one_by_one(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint16_t* out) {
    for (std::int64_t i = 0; i < count; ++i) {
        out[2 * i] = a[i];
        out[2 * i + 1] = b[i];
    }
}

void zip_rows_one_by_one(const std::uint16_t* a, std::int64_t rows, std::int64_t count, std::uint16_t* out) {
    for (std::int64_t i = 0; i < rows; ++i) {
        zip_one_by_one(a + 2 * i * count, a + (2 * i + 1) * count, count, out + 2 * i * count);
    }
}

// A product of two f16 has 22 bits and a sum with a third at most 53 between the highest and the lowest that could
// decide how it is rounded: double holds what matters.
template <bool in_f16>
struct EmulatedF16 {
    static constexpr std::int64_t pair = 1, lanes = 32;
    static constexpr bool carries = in_f16;
    struct Sum {
        Float16 of[lanes];
    };
    using Vector = Sum;

    static Sum zero() { return {}; }
    static Vector load(const std::uint16_t* from) {
        Vector made;
        for (int i = 0; i < lanes; ++i) made.of[i] = Float16::of_bits(from[i]);
        return made;
    }
    static Vector broadcast(std::uint32_t unit) {
        Vector made;
        for (int i = 0; i < lanes; ++i) made.of[i] = Float16::of_bits(word(unit, i));
        return made;
    }
    static Sum multiply_add(const Vector& a, const Vector& b, const Sum& sum) {
        Sum made;
        for (int i = 0; i < lanes; ++i) {
            const double product = static_cast<double>(static_cast<float>(a.of[i])) * static_cast<float>(b.of[i]);
            made.of[i] = round_to_f16(product + static_cast<float>(sum.of[i]));
        }
        return made;
    }
    static Sum load_sum(const float* c) {
        Sum made;
        for (int i = 0; i < lanes; ++i) made.of[i] = Float16(c[i]);
        return made;
    }
    static void store_sum(const Sum& sum, float* c, bool add) {
        for (int i = 0; i < lanes; ++i) c[i] = static_cast<float>(sum.of[i]) + (add ? c[i] : 0.0F);
    }
    static void zip(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint16_t* out) {
        zip_one_by_one(a, b, count, out);
    }
    static void zip_rows(const std::uint16_t* a, std::int64_t rows, std::int64_t count, std::uint16_t* out) {
        zip_rows_one_by_one(a, rows, count, out);
    }
};

struct EmulatedBf16 {
    static constexpr std::int64_t pair = 2, lanes = 16;
    static constexpr bool carries = true;
    struct Sum {
        float of[lanes];
    };
    struct Vector {
        BFloat16 of[2 * lanes];
    };

    static Sum zero() { return {}; }
    static Vector load(const std::uint16_t* from) {
        Vector made;
        for (int i = 0; i < 2 * lanes; ++i) made.of[i] = BFloat16::of_bits(from[i]);
        return made;
    }
    static Vector broadcast(std::uint32_t unit) {
        Vector made;
        for (int i = 0; i < 2 * lanes; ++i) made.of[i] = BFloat16::of_bits(word(unit, i));
        return made;
    }
    // The odd product first, as the manual has it; a product of two bf16 is exact in f32.
    static Sum multiply_add(const Vector& a, const Vector& b, const Sum& sum) {
        Sum made = sum;
        for (int i = 0; i < lanes; ++i) {
            for (const int at : {2 * i + 1, 2 * i}) {
                made.of[i] += static_cast<float>(a.of[at]) * static_cast<float>(b.of[at]);
            }
        }
        return made;
    }
    static Sum load_sum(const float* c) {
        Sum made;
        for (int i = 0; i < lanes; ++i) made.of[i] = c[i];
        return made;
    }
    static void store_sum(const Sum& sum, float* c, bool /*add*/) {
        for (int i = 0; i < lanes; ++i) c[i] = sum.of[i];
    }
    static void zip(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint16_t* out) {
        zip_one_by_one(a, b, count, out);
    }
    static void zip_rows(const std::uint16_t* a, std::int64_t rows, std::int64_t count, std::uint16_t* out) {
        zip_rows_one_by_one(a, rows, count, out);
    }
};

}  // namespace

#if REHEARSE_HAS_AVX512_HALVES
const HalfSimd* native_f16(HalfSums sums) {
    static const bool has = has_avx512_fp16();
    if (!has) return nullptr;
    return sums == HalfSums::f16 ? &avx512_fp16 : &avx512_fp16_chunked;
}

const HalfSimd* native_bf16() {
    static const bool has = has_avx512_bf16();
    return has ? &avx512_bf16 : nullptr;
}
#else
const HalfSimd* native_f16(HalfSums /*sums*/) { return nullptr; }
const HalfSimd* native_bf16() { return nullptr; }
#endif

const HalfSimd& emulated_f16(HalfSums sums) {
    static constexpr HalfSimd chunked = half_simd<EmulatedF16<false>>();
    static constexpr HalfSimd all = half_simd<EmulatedF16<true>>();
    return sums == HalfSums::f16 ? all : chunked;
}

const HalfSimd& emulated_bf16() {
    static constexpr HalfSimd bf16 = half_simd<EmulatedBf16>();
    return bf16;
}

}  // namespace rehearse::kernels::cpu
