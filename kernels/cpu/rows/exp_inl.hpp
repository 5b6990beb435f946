// SPDX-License-Identifier: Apache-2.0
// Powers of two and exponentials of vectors, compiled once a SIMD target.
#if defined(REHEARSE_CPU_EXP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_EXP_INL
#undef REHEARSE_CPU_EXP_INL
#else
#define REHEARSE_CPU_EXP_INL
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float log2_e = 1.44269504F;
constexpr float ln_2 = 0.693147181F;

/// 2^x for x up to 127; 0 below -126; not a number of what is none. x = n + r with n whole and |r| <= 1/2; 2^r is the
/// series of exp(r ln 2) to its sixth power, whose rest is below (ln 2 / 2)^7 / 7! = 1.2e-7, about an ulp.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V power_of_two(D d, V x) {
    const hn::RebindToSigned<D> whole;
    const auto tiny = hn::Lt(x, hn::Set(d, -126.0F));
    const V bounded = hn::IfThenElse(tiny, hn::Set(d, -126.0F), x);  // a maximum may drop what is not a number
    const auto n = hn::NearestInt(bounded);
    const V r = hn::Sub(bounded, hn::ConvertTo(d, n));
    V sum = hn::Set(d, 1.54035304e-4F);                    // ln 2 ^ 6 / 6!
    sum = hn::MulAdd(sum, r, hn::Set(d, 1.33335581e-3F));  // ^ 5 / 5!
    sum = hn::MulAdd(sum, r, hn::Set(d, 9.61812911e-3F));
    sum = hn::MulAdd(sum, r, hn::Set(d, 5.55041087e-2F));
    sum = hn::MulAdd(sum, r, hn::Set(d, 2.40226507e-1F));
    sum = hn::MulAdd(sum, r, hn::Set(d, ln_2));
    sum = hn::MulAdd(sum, r, hn::Set(d, 1.0F));
    const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(whole, 127))));
    return hn::IfThenZeroElse(tiny, hn::Mul(sum, scale));
}

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
