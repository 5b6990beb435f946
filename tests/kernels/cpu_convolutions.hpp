// SPDX-License-Identifier: Apache-2.0
// What the tests of our own convolutions share: each runs as if the processor had nothing better than one SIMD target,
// with one thread and with three, and is compared with the reference.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <omp.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {

inline const Backend& cpu_algorithm(std::string_view name) {
    for (const Backend* backend : backends()) {
        if (backend->name() == "cpu" && backend->algorithm() == name) return *backend;
    }
    throw std::logic_error("no such algorithm in this build: " + std::string{name});
}

class OnEachTarget : public testing::TestWithParam<std::tuple<std::int64_t, int>> {
protected:
    void SetUp() override {
        hwy::SetSupportedTargetsForTest(std::get<0>(GetParam()));
        omp_set_num_threads(std::get<1>(GetParam()));
    }
    void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::vector<std::int64_t> simd_targets() {
    std::vector<std::int64_t> found;
    for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
        found.push_back(left & -left);
    }
    return found;
}

inline std::string target_name(const testing::TestParamInfo<std::tuple<std::int64_t, int>>& target) {
    return hwy::TargetName(std::get<0>(target.param)) + std::string{std::get<1>(target.param) == 1 ? "" : "Threads"};
}

struct Largest {
    double dst = 0, diff_src = 0, diff_weights = 0;
};

inline double largest_difference(const std::vector<float>& actual, const std::vector<float>& expected) {
    double largest = actual.size() == expected.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
        // NaN, which marks what nobody wrote, is as far away as can be.
        largest = std::max(largest, std::isnan(difference) ? INFINITY : difference);
    }
    return largest;
}

/// The largest difference to the reference in each result.
inline Largest differences(const Conv& op, std::int64_t batch, const Backend& backend) {
    Tensors expected{op, batch, reference::backend()};
    Tensors actual{op, batch, backend};
    expected.run_forward_and_backward(reference::backend());
    actual.run_forward_and_backward(backend);
    return {largest_difference(actual.dst, expected.dst), largest_difference(actual.diff_src[0], expected.diff_src[0]),
            largest_difference(actual.diff_weights, expected.diff_weights)};
}

}  // namespace rehearse::kernels
