// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rehearse {

/// SignSGD with majority vote (Bernstein et al. 2018): each rank sends the signs of its gradients, and all update by
/// the sign that most of them have; by 0 where as many have one as the other.
struct SignVote {
    bool on = false;
};
/// What a rank sends of a bucket, in words of 32 bits: a bit an element, set where it is below 0.
constexpr std::int64_t words_of_signs(std::int64_t elements) { return (elements + 31) / 32; }

}  // namespace rehearse
