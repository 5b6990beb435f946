// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include "bench/workload.hpp"
#include "core/error.hpp"
#include "kernels/convert.hpp"

namespace rehearse::bench {

namespace {

const kernels::Backend& reference() { return *kernels::backends().back(); }

// Everything that a pass writes, one after the other.
std::vector<float> written(const kernels::Buffers& buffers, Pass pass) {
    std::vector<float> all;
    const auto append = [&all](kernels::ConstView part) {
        all.resize(all.size() + part.size());
        kernels::convert(part, std::span{all}.last(part.size()));
    };
    switch (pass) {
        case Pass::forward:
            append(buffers.dst);
            break;
        case Pass::backward_data:
            for (const kernels::View part : buffers.diff_src) append(part);
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

double tolerance(const Problem& problem, const kernels::Backend& backend) {
    const bool transforms = backend.algorithm().starts_with("winograd") || backend.algorithm() == "fft";
    const double sums = transforms ? 1e-3 : 1e-5;
    return problem.type == DataType::f32 ? sums : sums + 2 * unit_roundoff(problem.type);
}

double difference(const std::vector<float>& expected, const std::vector<float>& actual) {
    require(expected.size() == actual.size(), "a pass writes as much whoever runs it");
    double square = 0;
    double norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double e = expected[i];
        square += (actual[i] - e) * (actual[i] - e);
        norm += e * e;
    }
    return norm > 0 ? std::sqrt(square / norm) : std::sqrt(square);
}

}  // namespace

std::vector<Checked> check(const Problem& problem, std::span<const kernels::Backend* const> backends,
                           std::uint64_t seed) {
    const std::vector<float> expected = result(problem, reference(), seed);
    std::vector<Checked> checks;
    for (const kernels::Backend* backend : backends) {
        checks.push_back({difference(expected, result(problem, *backend, seed)), tolerance(problem, *backend)});
    }
    return checks;
}

}  // namespace rehearse::bench
