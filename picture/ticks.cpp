// SPDX-License-Identifier: Apache-2.0
#include "picture/ticks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rehearse::picture {

namespace {

// Ends of a range and powers of ten come out of divisions and logarithms: what is this near counts as equal.
constexpr double rounding = 1e-9;

constexpr std::array factors{1.0, 2.0, 5.0};

double power_of_ten(int exponent) { return std::pow(10.0, exponent); }

// The smallest step of 1, 2 or 5 times a power of ten of which at most `most` - 1 cover the range.
double step_for(Range range, int most) {
    const double least = (range.high - range.low) / (most - 1);
    const int exponent = static_cast<int>(std::floor(std::log10(least)));
    for (const double factor : factors) {
        const double step = factor * power_of_ten(exponent);
        if (step >= least * (1 - rounding)) return step;
    }
    return power_of_ten(exponent + 1);
}

int first_decade(Range range) { return static_cast<int>(std::ceil(std::log10(range.low) - rounding)); }
int last_decade(Range range) { return static_cast<int>(std::floor(std::log10(range.high) + rounding)); }

bool inside(double value, Range range) {
    return value >= range.low * (1 - rounding) && value <= range.high * (1 + rounding);
}

double outward(double value, bool up) {
    const double power = power_of_ten(static_cast<int>(std::floor(std::log10(value) + rounding)));
    constexpr std::array<double, 4> steps{1, 2, 5, 10};
    double best = up ? 10 * power : power;
    for (const double step : steps) {
        if (up && step * power >= value * (1 - rounding)) return step * power;
        if (!up && step * power <= value * (1 + rounding)) best = step * power;
    }
    return best;
}

}  // namespace

Ticks linear_ticks(Range range, int most) {
    require(range.high > range.low && most >= 2, "a range of ticks is not empty");
    const double step = step_for(range, most);
    Ticks found;
    const double first = std::ceil(range.low / step - rounding);
    for (double i = first; i * step <= range.high + rounding * step; ++i) {
        found.major.push_back(i == 0 ? 0 : i * step);
    }
    return found;
}

Ticks log_ticks(Range range, int most) {
    require(range.low > 0 && range.high > range.low && most >= 2, "a logarithmic range is above 0");
    const int first = first_decade(range);
    const int last = last_decade(range);
    const bool narrow = std::log10(range.high / range.low) < 2;
    const int every = std::max(1, (last - first + most) / most);
    Ticks found;
    for (int exponent = first - 1; exponent <= last; ++exponent) {
        for (int factor = 1; factor < 10; ++factor) {
            const double value = factor * power_of_ten(exponent);
            if (!inside(value, range)) continue;
            const bool labelled =
                (factor == 1 && (exponent - first) % every == 0) || (narrow && (factor == 2 || factor == 5));
            if (labelled) found.major.push_back(value);
            if (!labelled && (every == 1 || factor == 1)) found.minor.push_back(value);
        }
    }
    if (found.major.size() < 2) return linear_ticks(range, most);  // much less than a decade
    return found;
}

Ticks ticks(Scale scale, Range range, int most) {
    return scale == Scale::log ? log_ticks(range, most) : linear_ticks(range, most);
}

Range nice_range(Scale scale, Range data, int most) {
    if (scale == Scale::log) {
        require(data.low > 0 && data.high >= data.low, "a logarithmic range is above 0");
        if (data.high == data.low) data = {data.low / 2, data.high * 2};
        return {outward(data.low, false), outward(data.high, true)};
    }
    require(data.high >= data.low, "a range goes up");
    if (data.high == data.low) {
        const double room = data.high == 0 ? 1 : std::abs(data.high) / 2;
        data = {data.low - room, data.high + room};
    }
    const double step = step_for(data, most);
    return {std::floor(data.low / step + rounding) * step, std::ceil(data.high / step - rounding) * step};
}

std::string text_of_time(double seconds, double step) {
    require(step > 0, "times that are told apart differ");
    if (seconds == 0) return "0 s";
    const double size = std::max(std::abs(seconds), step);
    for (const auto& [scale, name] : {std::pair{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}) {
        if (size < 0.99995 * scale && scale > 1e-9) continue;
        const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step / scale) - rounding)), 0, 12);
        return fmt::format("{:.{}f} {}", seconds / scale, digits, name);
    }
    return {};
}

std::string text_of(double value, Unit unit) {
    switch (unit) {
        case Unit::none:
            break;
        case Unit::bytes:
            return to_string(Bytes{value});
        case Unit::flops:
            return to_string(Flops{value});
        case Unit::seconds:
            return to_string(Seconds{value});
        case Unit::bandwidth:
            return to_string(Bandwidth{value});
        case Unit::flop_rate:
            return to_string(FlopRate{value});
        case Unit::intensity:
            return fmt::format("{:.6g} FLOP/B", value);
        case Unit::share:
            return fmt::format("{:.4g} %", 100 * value);
    }
    if (std::abs(value) >= 1e6 && std::abs(value) < 1e15) {  // as people say them
        const bool giga = std::abs(value) >= 1e9;
        return fmt::format("{:.4g} {}", value / (giga ? 1e9 : 1e6), giga ? 'G' : 'M');
    }
    return fmt::format("{:.6g}", value);
}

std::vector<std::string> texts_of_times(const std::vector<double>& seconds) {
    std::vector<std::string> texts;
    for (const double each : seconds) texts.push_back(text_of(each, Unit::seconds));
    const auto alike = std::ranges::adjacent_find(texts);
    if (alike == texts.end()) return texts;
    const auto first = alike - texts.begin();
    const double step = seconds.at(static_cast<std::size_t>(first) + 1) - seconds.at(static_cast<std::size_t>(first));
    std::ranges::transform(seconds, texts.begin(), [&](double each) { return text_of_time(each, step); });
    return texts;
}

}  // namespace rehearse::picture
