// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "core/error.hpp"

namespace rehearse {

namespace {

struct Unit {
    std::string_view name;
    double scale;
    bool prefixes;  // k M G ... may stand before it
};

struct Dimension {
    std::string_view noun, example;
    std::span<const Unit> units;
};

constexpr std::array byte_units{Unit{"B", 1, true}, Unit{"bit", 0.125, true}};
constexpr std::array flop_units{Unit{"FLOP", 1, true}};
constexpr std::array second_units{Unit{"ns", 1e-9, false}, Unit{"us", 1e-6, false}, Unit{"µs", 1e-6, false},
                                  Unit{"ms", 1e-3, false}, Unit{"s", 1, false},     Unit{"min", 60, false},
                                  Unit{"h", 3600, false}};
constexpr std::array bandwidth_units{Unit{"Bps", 1, true}, Unit{"B/s", 1, true}, Unit{"bps", 0.125, true},
                                     Unit{"bit/s", 0.125, true}};
constexpr std::array rate_units{Unit{"FLOPS", 1, true}, Unit{"FLOP/s", 1, true}};

template <typename Q>
constexpr Dimension dimension;
template <>
constexpr Dimension dimension<Bytes>{"a size", "25MB", byte_units};
template <>
constexpr Dimension dimension<Flops>{"a number of operations", "2.5GFLOP", flop_units};
template <>
constexpr Dimension dimension<Seconds>{"a time", "1.5us", second_units};
template <>
constexpr Dimension dimension<Bandwidth>{"a bandwidth", "12.5GBps (bytes) or 100Gbps (bits)", bandwidth_units};
template <>
constexpr Dimension dimension<FlopRate>{"a rate", "15.7TFLOPS", rate_units};

struct Prefix {
    std::string_view name;
    double scale;
};
constexpr std::array prefixes{Prefix{"", 1},        Prefix{"k", 1e3},     Prefix{"M", 1e6},    Prefix{"G", 1e9},
                              Prefix{"T", 1e12},    Prefix{"P", 1e15},    Prefix{"E", 1e18},   Prefix{"Ki", 1024.0},
                              Prefix{"Mi", 0x1p20}, Prefix{"Gi", 0x1p30}, Prefix{"Ti", 0x1p40}};

// The scale of "GBps" among the units of a dimension; 0 when it is none of them.
double scale_of(std::string_view text, const Dimension& of) {
    for (const Unit& unit : of.units) {
        if (!text.ends_with(unit.name)) continue;
        const std::string_view before = text.substr(0, text.size() - unit.name.size());
        for (const Prefix& prefix : prefixes) {
            if (before == prefix.name && (unit.prefixes || before.empty())) return prefix.scale * unit.scale;
        }
    }
    return 0;
}

double parse(std::string_view text, const Dimension& of) {
    const auto wrong = [&](std::string_view why) {
        return InputError(fmt::format("'{}' is not {}: {} (write it like {})", text, of.noun, why, of.example));
    };
    double number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || !std::isfinite(number)) throw wrong("it does not start with a number");
    std::string_view unit{rest, static_cast<std::size_t>(text.data() + text.size() - rest)};
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    if (unit.empty()) throw wrong("the unit is missing");
    const double scale = scale_of(unit, of);
    if (scale == 0) throw wrong(fmt::format("unknown unit '{}'", unit));
    return number * scale;
}

std::string format(double value, std::string_view unit) {
    if (value == 0) return fmt::format("0 {}", unit);
    std::size_t i = 0;
    while (i + 1 < 7 && std::abs(value) >= 999.95 * prefixes.at(i).scale) ++i;
    return fmt::format("{:.4g} {}{}", value / prefixes.at(i).scale, prefixes.at(i).name, unit);
}

std::string format_time(double value) {
    if (value == 0) return "0 s";
    if (std::abs(value) >= 0.99995) return fmt::format("{:.4g} s", value);
    for (const auto& [scale, name] : {std::pair{1e-3, "ms"}, {1e-6, "us"}}) {
        if (std::abs(value) >= 0.99995 * scale) return fmt::format("{:.4g} {}", value / scale, name);
    }
    return fmt::format("{:.4g} ns", value * 1e9);
}

// A decimal prefix is used only where reading the text back gives the same double.
std::string exact(double value, std::string_view unit, const Dimension& of, std::span<const Prefix> scales) {
    std::string best = fmt::format("{}{}", value, unit);
    for (const Prefix& prefix : scales) {
        if (std::abs(value) < prefix.scale) continue;
        const std::string text = fmt::format("{}{}{}", value / prefix.scale, prefix.name, unit);
        if (text.size() < best.size() && parse(text, of) == value) best = text;
    }
    return best;
}

constexpr std::span decimal{prefixes.data() + 1, 5};

}  // namespace

template <typename Q>
Q parse_quantity(std::string_view text) {
    return Q{parse(text, dimension<Q>)};
}
template Bytes parse_quantity<Bytes>(std::string_view);
template Flops parse_quantity<Flops>(std::string_view);
template Seconds parse_quantity<Seconds>(std::string_view);
template Bandwidth parse_quantity<Bandwidth>(std::string_view);
template FlopRate parse_quantity<FlopRate>(std::string_view);

std::string to_string(Bytes bytes) { return format(bytes.value, "B"); }
std::string to_string(Flops flops) { return format(flops.value, "FLOP"); }
std::string to_string(Seconds seconds) { return format_time(seconds.value); }
std::string to_string(Bandwidth bandwidth) { return format(bandwidth.value, "B/s"); }
std::string to_string(FlopRate rate) { return format(rate.value, "FLOP/s"); }

std::string to_exact_string(Bytes bytes) { return exact(bytes.value, "B", dimension<Bytes>, decimal); }
std::string to_exact_string(Bandwidth bandwidth) {
    return exact(bandwidth.value, "Bps", dimension<Bandwidth>, decimal);
}
std::string to_exact_string(FlopRate rate) { return exact(rate.value, "FLOPS", dimension<FlopRate>, decimal); }
std::string to_exact_string(Seconds seconds) {
    std::string best = fmt::format("{}s", seconds.value);
    for (const auto& [scale, name] : {std::pair{1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}) {
        const std::string text = fmt::format("{}{}", seconds.value / scale, name);
        if (text.size() < best.size() && parse(text, dimension<Seconds>) == seconds.value) best = text;
    }
    return best;
}

}  // namespace rehearse
