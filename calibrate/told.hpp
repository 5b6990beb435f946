// SPDX-License-Identifier: Apache-2.0
// What a table of messages leaves open: of large ones only it does not tell where their line starts, of small ones only
// not how steep it is.
#pragma once

#include <span>

#include "calibrate/pieces.hpp"
#include "calibrate/samples.hpp"

namespace rehearse::calibrate {

/// Residuals of messages on a host that does nothing else are 0.02 to 0.1 (quick.hpp). One table does not say how far
/// the next one is off: never less than that.
inline constexpr double least_error = 0.02;

/// Whether `start` is more than three residuals of what the smallest message took, each `residual` of it or 2 %.
bool tells_start(std::span<const MessageSample> samples, Seconds start, double residual);
/// Likewise whether the bytes of the largest message at `rate` are, of what it took.
bool tells_rate(std::span<const MessageSample> samples, Bandwidth rate, double residual);

/// Least squares of the relative residuals of a line that starts at `start`, through messages of `up_to` or less; 0: of
/// all.
Bandwidth rate_from(std::span<const MessageSample> samples, Seconds start, Bytes up_to = {});

/// Whether all of them have one size, so that either the start or the rate has to be known.
bool of_one_size(std::span<const MessageSample> samples);
/// The line of rate_from(samples, start); it does not grow where they take no longer than `start`.
PieceFit line_from(std::span<const MessageSample> samples, Seconds start);

}  // namespace rehearse::calibrate
