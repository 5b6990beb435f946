// SPDX-License-Identifier: Apache-2.0
#include "core/methods/compression.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {

std::int64_t compressed_words(const Compression& compression, std::int64_t elements) {
    if (compression.kind == Compression::Kind::one_bit) return (elements + 31) / 32 + 2;
    const double kept = std::ceil(compression.share * static_cast<double>(elements));
    return 2 * std::clamp<std::int64_t>(static_cast<std::int64_t>(kept), 1, elements);
}

}  // namespace rehearse
