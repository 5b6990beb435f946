// SPDX-License-Identifier: Apache-2.0
// Physical quantities are types, always in base units (byte, flop, second); text always carries its unit.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace rehearse {

template <int ByteExp, int FlopExp, int SecondExp>
struct Quantity {
    double value = 0;
    constexpr Quantity() = default;
    constexpr explicit Quantity(double v) : value(v) {}
    friend constexpr auto operator<=>(Quantity, Quantity) = default;
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.value + b.value}; }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.value - b.value}; }
    friend constexpr Quantity operator*(Quantity a, double k) { return Quantity{a.value * k}; }
    friend constexpr Quantity operator*(double k, Quantity a) { return Quantity{a.value * k}; }
    friend constexpr Quantity operator/(Quantity a, double k) { return Quantity{a.value / k}; }
    constexpr Quantity& operator+=(Quantity b) { return value += b.value, *this; }
    constexpr Quantity& operator-=(Quantity b) { return value -= b.value, *this; }
};

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using Bandwidth = Quantity<1, 0, -1>;
using FlopRate = Quantity<0, 1, -1>;

/// Bytes / Bandwidth is Seconds, Bytes / Seconds is Bandwidth, Bytes / Bytes is a plain number.
template <int B, int F, int S, int B2, int F2, int S2>
constexpr auto operator/(Quantity<B, F, S> a, Quantity<B2, F2, S2> b) {
    if constexpr (B == B2 && F == F2 && S == S2) {
        return a.value / b.value;
    } else {
        return Quantity<B - B2, F - F2, S - S2>{a.value / b.value};
    }
}

template <int B, int F, int S, int B2, int F2, int S2>
constexpr auto operator*(Quantity<B, F, S> a, Quantity<B2, F2, S2> b) {
    return Quantity<B + B2, F + F2, S + S2>{a.value * b.value};
}

/// Reads "25GBps", "100Gbps" (bits), "1.5us", "16GiB", "15.7TFLOPS", "2.5GFLOP"; prefixes k M G T P are decimal,
/// Ki Mi Gi Ti binary. A bare number, an unknown unit or trailing text is an InputError that names the choices.
/// Q is one of the five quantities above.
template <typename Q>
Q parse_quantity(std::string_view text);

/// Four significant digits and the unit with a decimal prefix: "12.5 GB/s", "1.5 us", "15.7 TFLOP/s".
std::string to_string(Bytes bytes);
std::string to_string(Flops flops);
std::string to_string(Seconds seconds);
std::string to_string(Bandwidth bandwidth);
std::string to_string(FlopRate rate);

/// The shortest text that parse_quantity reads back to the same double: "12.5GBps", "1.5us". For files.
std::string to_exact_string(Bytes bytes);
std::string to_exact_string(Seconds seconds);
std::string to_exact_string(Bandwidth bandwidth);
std::string to_exact_string(FlopRate rate);

namespace literals {
// clang-format off
constexpr Bytes operator""_B(unsigned long long v) { return Bytes{static_cast<double>(v)}; }
constexpr Bytes operator""_kB(long double v) { return Bytes{static_cast<double>(v) * 1e3}; }
constexpr Bytes operator""_kB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1e3}; }
constexpr Bytes operator""_MB(long double v) { return Bytes{static_cast<double>(v) * 1e6}; }
constexpr Bytes operator""_MB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1e6}; }
constexpr Bytes operator""_GB(long double v) { return Bytes{static_cast<double>(v) * 1e9}; }
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1e9}; }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1024}; }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1048576}; }
constexpr Bandwidth operator""_MBps(long double v) { return Bandwidth{static_cast<double>(v) * 1e6}; }
constexpr Bandwidth operator""_MBps(unsigned long long v) { return Bandwidth{static_cast<double>(v) * 1e6}; }
constexpr Bandwidth operator""_GBps(long double v) { return Bandwidth{static_cast<double>(v) * 1e9}; }
constexpr Bandwidth operator""_GBps(unsigned long long v) { return Bandwidth{static_cast<double>(v) * 1e9}; }
constexpr FlopRate operator""_GFLOPS(unsigned long long v) { return FlopRate{static_cast<double>(v) * 1e9}; }
constexpr FlopRate operator""_TFLOPS(long double v) { return FlopRate{static_cast<double>(v) * 1e12}; }
constexpr FlopRate operator""_TFLOPS(unsigned long long v) { return FlopRate{static_cast<double>(v) * 1e12}; }
constexpr Seconds operator""_s(long double v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_ms(long double v) { return Seconds{static_cast<double>(v) * 1e-3}; }
constexpr Seconds operator""_ms(unsigned long long v) { return Seconds{static_cast<double>(v) * 1e-3}; }
constexpr Seconds operator""_us(long double v) { return Seconds{static_cast<double>(v) * 1e-6}; }
constexpr Seconds operator""_us(unsigned long long v) { return Seconds{static_cast<double>(v) * 1e-6}; }
// clang-format on
}  // namespace literals

}  // namespace rehearse
