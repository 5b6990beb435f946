// SPDX-License-Identifier: Apache-2.0
// How often who waits for a message looks for it: what kernels/comm/idle does and sim predicts.
#pragma once

#include <algorithm>
#include <chrono>

namespace rehearse {

/// A nap of who has nothing else to do and has waited so long: a sixteenth of it, 1 us at least, 200 us at most.
constexpr std::chrono::nanoseconds attentive_nap(std::chrono::nanoseconds waited) {
    using namespace std::chrono_literals;
    return std::clamp<std::chrono::nanoseconds>(waited / 16, 1us, 200us);
}
/// A shorter one is taken after every twentieth look only.
inline constexpr std::chrono::nanoseconds nap_at_each_look = std::chrono::microseconds{20};

}  // namespace rehearse
