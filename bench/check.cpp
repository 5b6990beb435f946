// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/workload.hpp"
#include "core/error.hpp"

namespace rehearse::bench {

namespace {

const kernels::Backend& reference() { return *kernels::backends().back(); }

// Everything that a pass writes, one after the other.
std::vector<float> written(const kernels::Buffers& buffers, Pass pass) {
    std::vector<float> all;
    const auto append = [&all](std::span<const float> part) { all.insert(all.end(), part.begin(), part.end()); };
    switch (pass) {
        case Pass::forward:
            append(buffers.dst);
            break;
        case Pass::backward_data:
            for (const std::span<float> part : buffers.diff_src) append(part);
            break;
        case Pass::backward_weights:
            append(buffers.diff_weights);
            break;
        case Pass::update:
            append(buffers.weights);
            append(buffers.momentum);
            break;
    }
    return all;
}

std::vector<float> result(const Problem& problem, const kernels::Backend& backend, std::uint64_t seed) {
    Workload workload(problem, backend, CacheState::hot);
    Arena arena(workload.floats(), seed);
    workload.set_up(arena, workload.floats());
    workload.run();
    return written(workload.current(), problem.pass);
}

// Of a sum of n products in f32. Partial sums of random signs grow as the root of their number, each addition rounds by
// up to 2^-24 of them: in the mean 2^-24 sqrt(n / 6) of the result; four times that, and never less than 1e-5.
double sum_tolerance(double n) { return std::max(1e-5, 4 * 0x1p-24 * std::sqrt(n / 6)); }

Checked compared(const std::vector<float>& expected, const std::vector<float>& actual, const Problem& problem,
                 std::string_view algorithm) {
    require(expected.size() == actual.size(), "a pass writes as much whoever runs it");
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double e = expected[i];
        difference += (actual[i] - e) * (actual[i] - e);
        norm += e * e;
    }
    const double terms =
        flops(problem.op, problem.pass, problem.batch).value / (2.0 * static_cast<double>(expected.size()));
    const bool transforms = algorithm.starts_with("winograd") || algorithm == "fft";
    return {norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference), transforms ? 1e-3 : sum_tolerance(terms)};
}

}  // namespace

std::vector<Checked> check(const Problem& problem, std::span<const kernels::Backend* const> backends,
                           std::uint64_t seed) {
    const std::vector<float> expected = result(problem, reference(), seed);
    std::vector<Checked> checks;
    for (const kernels::Backend* backend : backends) {
        checks.push_back(compared(expected, result(problem, *backend, seed), problem, backend->algorithm()));
    }
    return checks;
}

}  // namespace rehearse::bench
