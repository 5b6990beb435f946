// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// Numbers from the source's pixel and from the channel's weights to what a tap reads.
struct TapAt {
    std::int64_t src, weights;
};

}  // namespace rehearse::kernels::cpu
