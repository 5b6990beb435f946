// SPDX-License-Identifier: Apache-2.0
// Complex Fourier transforms of 8, 16 and 32 points, one a lane: decimation in time down to 4 points (Cooley and Tukey
// 1965), all loops unrolled, so that vectors never have to be shuffled.
#if defined(REHEARSE_CPU_FFT_CODELETS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_FFT_CODELETS_INL
#undef REHEARSE_CPU_FFT_CODELETS_INL
#else
#define REHEARSE_CPU_FFT_CODELETS_INL
#endif

#include <array>

#include "kernels/cpu/conv/tiles_transpose_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

struct Complex {
    Vec re, im;
};

HWY_INLINE Complex add(const Complex& a, const Complex& b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
HWY_INLINE Complex subtract(const Complex& a, const Complex& b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }

// cos(2 pi k / 32) for k = 0 ... 8; the sines are the same backwards.
inline constexpr std::array<float, 9> cosines{1.0F,         0.980785280F, 0.923879533F, 0.831469612F, 0.707106781F,
                                              0.555570233F, 0.382683432F, 0.195090322F, 0.0F};

// v * exp(-2 pi i k / n), 0 <= k < n / 2
template <int k, int n>
HWY_INLINE Complex rotated(const Complex& v) {
    constexpr int eighth = k * 32 / n;  // of a turn of 32 steps, below 16
    if constexpr (eighth == 0) {
        return v;
    } else if constexpr (eighth == 8) {
        return {v.im, hn::Neg(v.re)};
    } else if constexpr (eighth > 8) {
        const Complex w = rotated<eighth - 8, 32>(v);
        return {w.im, hn::Neg(w.re)};
    } else {
        const Floats d;
        const Vec c = hn::Set(d, cosines[eighth]), s = hn::Set(d, cosines[8 - eighth]);
        return {hn::MulAdd(v.re, c, hn::Mul(v.im, s)), hn::NegMulAdd(v.re, s, hn::Mul(v.im, c))};
    }
}

template <int n, int k = 0>
HWY_INLINE void join_halves(const Complex* even, const Complex* odd, Complex* out) {
    const Complex turned = rotated<k, n>(odd[k]);
    out[k] = add(even[k], turned);
    out[k + n / 2] = subtract(even[k], turned);
    if constexpr (k + 1 < n / 2) join_halves<n, k + 1>(even, odd, out);
}

/// out[k] = sum over j < n of in[j * stride] exp(-2 pi i j k / n)
template <int n>
HWY_INLINE void fourier(const Complex* in, int stride, Complex* out) {
    if constexpr (n == 1) {
        out[0] = in[0];
    } else {
        Complex even[n / 2], odd[n / 2];
        fourier<n / 2>(in, 2 * stride, even);
        fourier<n / 2>(in + stride, 2 * stride, odd);
        join_halves<n>(even, odd, out);
    }
}

template <int n>
void transform(const Complex* in, Complex* out) {
    fourier<n>(in, 1, out);
}

/// n times the inverse: exchanging real and imaginary parts before and after turns the sign of the exponent.
template <int n>
void transform_back(Complex* in, Complex* out) {
    for (int i = 0; i < n; ++i) in[i] = {in[i].im, in[i].re};
    fourier<n>(in, 1, out);
    for (int i = 0; i < n; ++i) out[i] = {out[i].im, out[i].re};
}

/// Two real sequences are transformed as one complex one, a + i b. Of the sum's transform at k and at n - k these are
/// the transforms of a and b at k.
HWY_INLINE void separate(const Complex& at_k, const Complex& at_minus_k, Complex& a, Complex& b) {
    const Vec half = hn::Set(Floats(), 0.5F);
    a = {hn::Mul(half, hn::Add(at_k.re, at_minus_k.re)), hn::Mul(half, hn::Sub(at_k.im, at_minus_k.im))};
    b = {hn::Mul(half, hn::Add(at_k.im, at_minus_k.im)), hn::Mul(half, hn::Sub(at_minus_k.re, at_k.re))};
}

/// The other way: a + i b at k and at n - k.
HWY_INLINE void unite(const Complex& a, const Complex& b, Complex& at_k, Complex& at_minus_k) {
    at_k = {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
    at_minus_k = {hn::Add(a.re, b.im), hn::Sub(b.re, a.im)};
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
