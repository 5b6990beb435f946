// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

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

// Backends may have workspaces of different sizes: the arena grows.
std::vector<float> result(const Problem& problem, const kernels::Backend& backend, std::unique_ptr<Arena>& arena,
                          std::uint64_t seed, Bytes limit) {
    Workload workload(problem, {&backend}, CacheState::hot, limit);
    if (arena == nullptr || arena->floats() < workload.floats())
        arena = std::make_unique<Arena>(workload.floats(), seed);
    arena->clear();  // nobody finds what another one wrote
    workload.set_up(*arena, workload.floats());
    workload.run();
    return written(workload.current(), problem.pass);
}

Checked compared(const std::vector<float>& expected, const std::vector<float>& actual, std::string_view algorithm) {
    require(expected.size() == actual.size(), "a pass writes as much whoever runs it");
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double e = expected[i];
        difference += (actual[i] - e) * (actual[i] - e);
        norm += e * e;
    }
    const bool transforms = algorithm.starts_with("winograd") || algorithm == "fft";
    return {norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference), transforms ? 1e-3 : 1e-5};
}

}  // namespace

std::vector<Checked> check(const Problem& problem, std::span<const kernels::Backend* const> backends,
                           std::uint64_t seed) {
    return check(problem, backends, seed, reference(), kernels::any_scratch);
}

std::vector<Checked> check(const Problem& problem, std::span<const kernels::Backend* const> backends,
                           std::uint64_t seed, const kernels::Backend& trusted, Bytes limit) {
    std::unique_ptr<Arena> arena;
    const std::vector<float> expected = result(problem, trusted, arena, seed, limit);
    std::vector<Checked> checks;
    for (const kernels::Backend* backend : backends) {
        checks.push_back(compared(expected, result(problem, *backend, arena, seed, limit), backend->algorithm()));
    }
    return checks;
}

}  // namespace rehearse::bench
