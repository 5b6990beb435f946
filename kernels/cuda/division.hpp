// SPDX-License-Identifier: Apache-2.0
// Division of indices: a GPU has no divider, and 64-bit division is some hundred of its instructions.
#pragma once

#include <cstdint>

#include "kernels/cuda/team.hpp"

namespace rehearse::kernels::cuda {

/// A positive number by which indices are divided, exactly: n below 2^31 by one multiplication, all else as ever.
/// With l the least for which 2^l >= d, and m = ceil(2^(31 + l) / d), n / d is the upper half of 2 n m, shifted by l
/// (Granlund and Montgomery 1994, theorem 4.2): m d exceeds 2^(31 + l) by less than 2^l, so that the quotient is too
/// large by less than n 2^l / (d 2^(31 + l)) < 1 / d. From 2^31 on d divides no such n, and m is 0.
class Divisor {
public:
    Divisor() = default;
    Divisor(std::int64_t by) : by_(by) {  // NOLINT: tasks are filled with plain sizes
        if (by > std::int64_t{1} << 31) {
            multiplier_ = 0;
            return;
        }
        while ((std::int64_t{1} << shift_) < by) ++shift_;
        const std::uint64_t power = std::uint64_t{1} << (31 + shift_);
        multiplier_ =
            static_cast<std::uint32_t>((power + static_cast<std::uint64_t>(by) - 1) / static_cast<std::uint64_t>(by));
    }
    REHEARSE_BOTH operator std::int64_t() const { return by_; }  // NOLINT: as above

    friend REHEARSE_BOTH std::int64_t operator/(std::int64_t n, const Divisor& d) {
        return (static_cast<std::uint64_t>(n) >> 31) == 0 ? d.of_small(static_cast<std::uint32_t>(n)) : n / d.by_;
    }
    friend REHEARSE_BOTH std::int64_t operator%(std::int64_t n, const Divisor& d) { return n - n / d * d.by_; }
    /// Of a number that is not negative.
    friend REHEARSE_BOTH std::int32_t operator/(std::int32_t n, const Divisor& d) {
        return static_cast<std::int32_t>(d.of_small(static_cast<std::uint32_t>(n)));
    }

private:
    REHEARSE_BOTH std::uint32_t of_small(std::uint32_t n) const {
#ifdef __CUDA_ARCH__
        return __umulhi(2 * n, multiplier_) >> shift_;
#else
        return static_cast<std::uint32_t>((std::uint64_t{2 * n} * multiplier_) >> 32) >> shift_;
#endif
    }

    std::int64_t by_ = 1;
    std::uint32_t multiplier_ = std::uint32_t{1} << 31, shift_ = 0;
};

}  // namespace rehearse::kernels::cuda
