// SPDX-License-Identifier: Apache-2.0
// The methods of training. A new one is a file beside this one and its name here.
#include <array>

#include "schedule/methods/method.hpp"

namespace rehearse::schedule {

extern const Method synchronous, combined_updates, lag, compression, sign_vote, averaging, servers, curvature, bilevel,
    trust_ratios;

std::span<const Method* const> methods() {
    static constexpr std::array rows{&synchronous, &combined_updates, &lag,       &compression, &sign_vote,
                                     &averaging,   &servers,          &curvature, &bilevel,     &trust_ratios};
    return rows;
}

}  // namespace rehearse::schedule
