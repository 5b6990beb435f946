// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/reduction.hpp"

#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/comm/reduction.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                          // must come before highway.h
#include "hwy/highway.h"

#include "core/error.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> f32;
const hn::Rebind<std::uint16_t, decltype(f32)> u16;  // as many lanes, of half the width
const hn::Rebind<hwy::float16_t, decltype(f32)> f16;
using Bits = hn::RebindToUnsigned<decltype(f32)>;

struct Float {
    using Stored = float;
    static void add(float* sum, const float* arrived) {
        hn::StoreU(hn::Add(hn::LoadU(f32, sum), hn::LoadU(f32, arrived)), f32, sum);
    }
};

struct Half {
    using Stored = std::uint16_t;
    static hn::Vec<decltype(f32)> load(const std::uint16_t* from) {
        return hn::PromoteTo(f32, hn::BitCast(f16, hn::LoadU(u16, from)));
    }
    static void add(std::uint16_t* sum, const std::uint16_t* arrived) {
        const auto total = hn::DemoteTo(f16, hn::Add(load(sum), load(arrived)));
        hn::StoreU(hn::BitCast(u16, total), u16, sum);
    }
};

struct Bfloat {
    using Stored = std::uint16_t;
    static hn::Vec<decltype(f32)> load(const std::uint16_t* from) {
        return hn::BitCast(f32, hn::ShiftLeft<16>(hn::PromoteTo(Bits(), hn::LoadU(u16, from))));
    }
    // To nearest, ties to even, as BFloat16; Highway 1.0.3 cuts the lower bits off.
    static void add(std::uint16_t* sum, const std::uint16_t* arrived) {
        const auto total = hn::Add(load(sum), load(arrived));
        const auto bits = hn::BitCast(Bits(), total);
        const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Bits(), 1));
        const auto nearest = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(Bits(), 0x7FFF))));
        const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(Bits(), 0x40));
        const auto is_number = hn::RebindMask(Bits(), hn::Eq(total, total));
        const hn::RebindToSigned<decltype(f32)> i32;
        const auto stored = hn::BitCast(i32, hn::IfThenElse(is_number, nearest, quiet));
        hn::StoreU(hn::DemoteTo(u16, stored), u16, sum);
    }
};

template <typename Kind>
void add_all(std::byte* sum_bytes, const std::byte* arrived_bytes, std::int64_t count) {
    using Stored = typename Kind::Stored;
    auto* sum = reinterpret_cast<Stored*>(sum_bytes);
    const auto* arrived = reinterpret_cast<const Stored*>(arrived_bytes);
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(f32));
    std::int64_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        for (int k = 0; k < 4; ++k) Kind::add(sum + i + k * lanes, arrived + i + k * lanes);
    }
    for (; i + lanes <= count; i += lanes) Kind::add(sum + i, arrived + i);
    if (i == count) return;
    constexpr std::size_t widest = 64;
    std::array<Stored, widest> last{}, more{};
    const auto left = static_cast<std::size_t>(count - i) * sizeof(Stored);
    std::memcpy(last.data(), sum + i, left);
    std::memcpy(more.data(), arrived + i, left);
    Kind::add(last.data(), more.data());
    std::memcpy(sum + i, last.data(), left);
}

void add_floats(std::byte* sum, const std::byte* arrived, std::int64_t n) { add_all<Float>(sum, arrived, n); }
void add_halves(std::byte* sum, const std::byte* arrived, std::int64_t n) { add_all<Half>(sum, arrived, n); }
void add_bfloats(std::byte* sum, const std::byte* arrived, std::int64_t n) { add_all<Bfloat>(sum, arrived, n); }

}  // namespace
}  // namespace rehearse::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels {

HWY_EXPORT(add_floats);
HWY_EXPORT(add_halves);
HWY_EXPORT(add_bfloats);

void add(DataType type, std::byte* sum, const std::byte* arrived, std::int64_t count) {
    switch (type) {
        case DataType::f32:
            return HWY_DYNAMIC_DISPATCH(add_floats)(sum, arrived, count);
        case DataType::f16:
            return HWY_DYNAMIC_DISPATCH(add_halves)(sum, arrived, count);
        case DataType::bf16:
            return HWY_DYNAMIC_DISPATCH(add_bfloats)(sum, arrived, count);
        case DataType::tf32:
        case DataType::fp8:
            break;
    }
    require(false, "memory holds f32, f16 or bf16");
}

}  // namespace rehearse::kernels
#endif
