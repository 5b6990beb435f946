// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/op.hpp"

namespace rehearse {

/// Gradients in fewer bits; what is left out is added to those of the next step (error feedback).
struct Compression {
    enum class Kind { none, top, one_bit } kind = Kind::none;
    double share = 0;  // of the elements, the largest ones, that `top` sends
    bool operator==(const Compression&) const = default;
};
/// What a rank sends of a bucket, in words of 32 bits: of `top` indices and values; of one_bit signs and two means.
std::int64_t compressed_words(const Compression& compression, std::int64_t elements);

/// Gradients are rounded to this type for the wire and summed in it; absent: they travel as they are.
struct Rounding {
    std::optional<DataType> type{};
};

}  // namespace rehearse
