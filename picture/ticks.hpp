// SPDX-License-Identifier: Apache-2.0
// Where the marks of an axis stand, and what they say.
#pragma once

#include <string>
#include <vector>

namespace rehearse::picture {

enum class Scale { linear, log };

/// What an axis counts, always in base units. intensity: FLOP a byte; share: 0.5 is shown as 50 %.
enum class Unit { none, bytes, flops, seconds, bandwidth, flop_rate, intensity, share };

struct Range {
    double low = 0, high = 1;
    bool operator==(const Range&) const = default;
};

struct Ticks {
    std::vector<double> major, minor;  // only the major ones have text
};

/// Multiples of 1, 2 or 5 times a power of ten inside the range, at most `most` (at least 2) of them.
Ticks linear_ticks(Range range, int most);

/// Powers of ten inside the range; every second, third, ... only where there would be more than `most`, with the others
/// as minor ones. Below two decades also their 2 and 5 times; minor: 2 to 9 times. range.low > 0.
Ticks log_ticks(Range range, int most);

Ticks ticks(Scale scale, Range range, int most);

/// The range that begins and ends at a tick (linear), or at 1, 2 or 5 times a power of ten (log), and holds `data`. An
/// empty range is widened.
Range nice_range(Scale scale, Range data, int most);

/// A time with as many digits as tell it from another `step` seconds away: "1.2345678 s" for steps of 100 ns. step > 0.
std::string text_of_time(double seconds, double step);

/// Times at equal distances as text_of says them, or, where two would read the same, with as many digits as tell them
/// apart.
std::vector<std::string> texts_of_times(const std::vector<double>& seconds);

/// "10 GFLOP/s", "64", "0.25 FLOP/B", "50 %".
std::string text_of(double value, Unit unit);

}  // namespace rehearse::picture
