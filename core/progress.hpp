// SPDX-License-Identifier: Apache-2.0
// How long work tells its caller how far it is, and learns that it should end.
#pragma once

#include <cstdint>
#include <functional>

namespace rehearse {

/// Called after each part of long work with how many parts are done, of how many in all. False: the work ends now and
/// hands over what it has.
using Progress = std::function<bool(std::int64_t done, std::int64_t all)>;

/// Without a listener work goes on.
inline bool goes_on(const Progress& progress, std::int64_t done, std::int64_t all) {
    return !progress || progress(done, all);
}

}  // namespace rehearse
