// SPDX-License-Identifier: Apache-2.0
// How a certificate says no. Included by this folder's sources only.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/timeline.hpp"

namespace rehearse::sim {

inline constexpr double rounding = 1e-6;  // relative; times and sizes are sums of very many

[[noreturn]] inline void refuse(const std::string& what) {
    throw std::logic_error(fmt::format("bug in Rehearse: the prediction breaks its certificate: {}", what));
}

inline std::string name(const Event& event) {
    return fmt::format("{} of rank {} (micro-batch {}, {} to {})", event.step, event.rank, event.micro_batch,
                       to_string(event.start), to_string(event.end));
}

/// An event begins no earlier than another one ends.
inline void follows(const Event& event, const Event& before, Seconds slack) {
    if (event.start >= before.end - slack) return;
    refuse(fmt::format("{} begins before {} has ended", name(event), name(before)));
}

/// An event takes so long or longer.
inline void at_least(const Event& event, Seconds least, std::string_view why, Seconds slack) {
    if (event.end - event.start >= least * (1 - rounding) - slack) return;
    refuse(fmt::format("{} is faster than {}: {}", name(event), why, to_string(least)));
}

}  // namespace rehearse::sim
