// SPDX-License-Identifier: Apache-2.0
#include "bench/loops_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/loops_simd.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                    // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rehearse::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
double fma(std::int64_t rounds) {
    const hn::ScalableTag<T> d;
    volatile T source = T{0.5};  // read anew for each chain: the compiler must not know that all are the same
    const auto half = hn::Set(d, source);
    hn::Vec<decltype(d)> sums[chains];
#pragma GCC unroll 16
    for (auto& sum : sums) sum = hn::Set(d, source);
    for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
        for (auto& sum : sums) sum = hn::MulAdd(sum, half, half);  // towards 1
    }
    auto all = hn::Zero(d);
#pragma GCC unroll 16
    for (const auto& sum : sums) all = hn::Add(all, sum);
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
}

double fma_f32(std::int64_t rounds) { return fma<float>(rounds); }
double fma_f64(std::int64_t rounds) { return fma<double>(rounds); }

// Which target this is.
std::int64_t target() { return HWY_TARGET; }
std::int64_t vector_bytes() { return static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<std::uint8_t>())); }

// Four vectors a turn; the end of an array that does not fill a vector by single numbers.
template <typename Element>
void for_all(double* HWY_RESTRICT dst, std::size_t count, const Element& element) {
    const hn::ScalableTag<double> d;
    const std::size_t lanes = hn::MaxLanes(d);
    std::size_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < 4; ++v) hn::StoreU(element(d, i + v * lanes), d, dst + i + v * lanes);
    }
    const hn::CappedTag<double, 1> one;
    for (; i < count; ++i) hn::StoreU(element(one, i), one, dst + i);
}

void stream(StreamKernel kernel, double* HWY_RESTRICT dst, const double* HWY_RESTRICT x, const double* HWY_RESTRICT y,
            std::size_t count) {
    switch (kernel) {
        case StreamKernel::copy:
            return for_all(dst, count, [x](auto d, std::size_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
        case StreamKernel::scale:
            return for_all(dst, count, [x](auto d, std::size_t i) HWY_ATTR {
                return hn::Mul(hn::Set(d, stream_scale), hn::LoadU(d, x + i));
            });
        case StreamKernel::add:
            return for_all(dst, count, [x, y](auto d, std::size_t i) HWY_ATTR {
                return hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i));
            });
        case StreamKernel::triad:
            return for_all(dst, count, [x, y](auto d, std::size_t i) HWY_ATTR {
                return hn::MulAdd(hn::Set(d, stream_scale), hn::LoadU(d, y + i), hn::LoadU(d, x + i));
            });
    }
}

}  // namespace
}  // namespace rehearse::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::bench {
namespace {

HWY_EXPORT(fma_f32);
HWY_EXPORT(fma_f64);
HWY_EXPORT(target);
HWY_EXPORT(vector_bytes);
HWY_EXPORT(stream);

double run_f32(std::int64_t rounds) { return HWY_DYNAMIC_DISPATCH(fma_f32)(rounds); }
double run_f64(std::int64_t rounds) { return HWY_DYNAMIC_DISPATCH(fma_f64)(rounds); }

std::string how() {
    const std::int64_t chosen = HWY_DYNAMIC_DISPATCH(target)();
    if (chosen == HWY_AVX3) return "AVX-512 FMA";
    if (chosen == HWY_AVX2) return "AVX2 FMA";
    return std::string{hwy::TargetName(chosen)} + " multiply-add";
}

FmaLoop loop(std::string_view type, std::int64_t bytes, double (*run)(std::int64_t)) {
    const std::int64_t lanes = HWY_DYNAMIC_DISPATCH(vector_bytes)() / bytes;
    return {type, how(), run, Flops{static_cast<double>(2 * chains * lanes)}, ""};
}

}  // namespace

FmaLoop fma_loop_f32() { return loop("f32", sizeof(float), run_f32); }
FmaLoop fma_loop_f64() { return loop("f64", sizeof(double), run_f64); }

void run(StreamKernel kernel, double* dst, const double* x, const double* y, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(stream)(kernel, dst, x, y, count);
}

}  // namespace rehearse::bench
#endif
