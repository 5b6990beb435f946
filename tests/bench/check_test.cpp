// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <gtest/gtest.h>

namespace rehearse::bench {
namespace {

std::vector<Checked> of_all(const Problem& problem) {
    std::vector<const kernels::Backend*> backends;
    for (const kernels::Backend* backend : kernels::backends()) {
        if (backend->supports(problem).yes) backends.push_back(backend);
    }
    return check(problem, backends, 1);
}

TEST(Check, AllowsLongSumsWhatTheirRoundingIs) {
    // 4 * 2^-24 * sqrt(500000 / 6) = 6.883e-5
    for (const Checked& each : of_all({MatMul{.m = 1, .n = 8, .k = 500000, .bias = false}, Pass::forward, 4})) {
        EXPECT_NEAR(each.tolerance, 6.883e-5, 1e-8);
        EXPECT_LE(each.error, each.tolerance);
    }
    // The same product as a gradient: the sum runs over the batch.
    for (const Checked& each :
         of_all({MatMul{.m = 1, .n = 8, .k = 4, .bias = false}, Pass::backward_weights, 500000})) {
        EXPECT_NEAR(each.tolerance, 6.883e-5, 1e-8);
        EXPECT_LE(each.error, each.tolerance);
    }
}

TEST(Check, OfShortSumsIsStrict) {
    for (const Checked& each : of_all({MatMul{.m = 1, .n = 8, .k = 64, .bias = false}, Pass::forward, 4})) {
        EXPECT_EQ(each.tolerance, 1e-5);
        EXPECT_LE(each.error, each.tolerance);
    }
}

}  // namespace
}  // namespace rehearse::bench
