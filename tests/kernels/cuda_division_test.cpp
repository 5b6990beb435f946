// SPDX-License-Identifier: Apache-2.0
// Division by multiplication against the host's own.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cuda/division.hpp"

namespace rehearse::kernels::cuda {
namespace {

constexpr std::int64_t last = (std::int64_t{1} << 31) - 1;  // the largest that is multiplied

void expect_exact(std::int64_t n, std::int64_t by) {
    const Divisor divisor{by};
    ASSERT_EQ(n / divisor, n / by) << n << " / " << by;
    ASSERT_EQ(n % divisor, n % by) << n << " % " << by;
    if (n <= last) {
        ASSERT_EQ(static_cast<std::int32_t>(n) / divisor, n / by) << n << " / " << by;
    }
}

// Where a quotient changes: multiples of the divisor, the number before and the one behind, near 0, 2^31 and 2^32.
void expect_exact_at_edges(std::int64_t by) {
    for (const std::int64_t near :
         {std::int64_t{0}, by, last, last + 1, std::int64_t{1} << 32, std::int64_t{1} << 40}) {
        const std::int64_t multiple = near / by * by;
        for (const std::int64_t n :
             {near - 1, near, near + 1, multiple - 1, multiple, multiple + by - 1, multiple + by}) {
            if (n >= 0) expect_exact(n, by);
        }
    }
}

TEST(Divisor, IsExactByEveryDivisorNearAPowerOfTwo) {
    for (int bit = 0; bit <= 40; ++bit) {
        for (std::int64_t off = -3; off <= 3; ++off) {
            const std::int64_t by = (std::int64_t{1} << bit) + off;
            if (by > 0) expect_exact_at_edges(by);
        }
    }
}

TEST(Divisor, IsExactByEverySmallDivisor) {
    for (std::int64_t by = 1; by <= 5000; ++by) expect_exact_at_edges(by);
}

TEST(Divisor, IsExactByRandomDivisors) {
    std::minstd_rand random(7);
    std::uniform_int_distribution<std::int64_t> any(0, std::int64_t{1} << 33);
    for (int i = 0; i < 200000; ++i) {
        const std::int64_t by = 1 + (any(random) >> (i % 33));
        expect_exact(any(random) >> (i / 33 % 33), by);
        if (i % 64 == 0) expect_exact_at_edges(by);
    }
}

// As kernels ask of what may lie before a padded image.
TEST(Divisor, DividesNegativeNumbersAsTheLanguageDoes) {
    const Divisor three{3};
    EXPECT_EQ(std::int64_t{-7} / three, -2);
    EXPECT_EQ(std::int64_t{-7} % three, -1);
}

}  // namespace
}  // namespace rehearse::kernels::cuda
