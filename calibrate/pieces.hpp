// SPDX-License-Identifier: Apache-2.0
// How long messages take by their size: lines, one a range of sizes, since protocols change with the size (eager,
// rendezvous, segments). What measurements of LogGP find (Hoefler et al. 2009, "LogGP in theory and practice").
#pragma once

#include <span>
#include <vector>

#include "calibrate/samples.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

struct PieceFit {
    std::vector<MessagePiece> pieces;  // without source
    double error = 0;                  // relative, one robust standard deviation of all samples' residuals
    std::int64_t samples = 0;
    bool grows = true;  // false: large messages took no longer than small ones, as on a host that is busy
};

/// At most `most` lines through the medians of the sizes, each with its least relative squares over three sizes or
/// more, cut where that is least in sum (dynamic programming; Bellman 1961). As many lines as Schwarz's criterion
/// (1978) says. A size counts the less the more its samples scatter, half at 2 %: messages of tens of KiB on a link
/// whose rate a token bucket holds take anything between nothing and their due, by what the bucket has saved.
/// InputError with fewer than two sizes.
PieceFit fit_pieces(std::span<const MessageSample> samples, int most = 4);

/// One line through the medians of the sizes, in the same way, whether it grows or not; `up_to` is 0.
MessagePiece fit_line(std::span<const MessageSample> samples);

}  // namespace rehearse::calibrate
