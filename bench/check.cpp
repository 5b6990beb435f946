// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/workload.hpp"
#include "core/error.hpp"
#include "kernels/convert.hpp"
#include "kernels/transposed.hpp"

namespace rehearse::bench {

namespace {

const kernels::Backend& reference() { return *kernels::backends().back(); }

// Everything that a pass writes, one after the other.
std::vector<float> written(const kernels::Buffers& buffers, const Problem& problem) {
    std::vector<float> all;
    const auto append = [&all](kernels::ConstView part) {
        all.resize(all.size() + part.size());
        kernels::convert(part, std::span{all}.last(part.size()));
    };
    switch (problem.pass) {
        case Pass::forward:
            append(buffers.dst);
            break;
        case Pass::backward_data:
            for (const kernels::View part : buffers.diff_src) append(part);
            if (gradients_together(problem.op)) append(buffers.diff_weights);
            break;
        case Pass::backward_weights:
            append(updates_directly(problem.op) ? buffers.weights : buffers.diff_weights);
            break;
        case Pass::update:
            append(buffers.weights);
            append(buffers.momentum);
            append(buffers.second_moment);
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
    return written(workload.current(), problem);
}

// Products in one sum of a convolution's result, at most.
double longest_sum(const Conv& conv, const Problem& problem) {
    const auto taps = static_cast<double>(conv.window.taps());
    if (problem.pass == Pass::forward) return static_cast<double>(conv.channels / conv.groups) * taps;
    if (problem.pass == Pass::backward_data) return static_cast<double>(conv.filters / conv.groups) * taps;
    return static_cast<double>(problem.batch * elements(output_shape(problem.op)) / conv.filters);
}

// Products in one sum of what a pass writes, `results` numbers: two operations each, in the mean of them.
double products(const Problem& problem, std::size_t results) {
    if (kernels::is_mirrored(problem)) return products(kernels::mirrored_problem(problem), results);
    if (const auto* conv = std::get_if<Conv>(&problem.op); conv != nullptr && problem.pass != Pass::update)
        return longest_sum(*conv, problem);
    const double all = flops(problem.op, problem.pass, problem.batch).value / 2;
    return std::max(1.0, all / static_cast<double>(std::max<std::size_t>(results, 1)));
}

// Of them in one chunk, at most: 64, or one channel's taps.
double chunk(const Problem& problem) {
    const Conv* conv = std::get_if<Conv>(&problem.op);
    return conv == nullptr ? 64 : std::max(64.0, static_cast<double>(conv->window.taps()));
}

// Of a sum of n products in f32. Partial sums of random signs grow as the root of their number, each addition rounds by
// up to 2^-24 of them: in the mean 2^-24 sqrt(n / 6) of the result; four times that, and never less than 1e-5.
double sum_tolerance(double n) { return std::max(1e-5, 4 * 0x1p-24 * std::sqrt(n / 6)); }

double tolerance(const Problem& problem, const kernels::Backend& backend, std::size_t results) {
    const bool transforms = backend.algorithm().starts_with("winograd") || backend.algorithm() == "fft";
    double sums = transforms ? 1e-3 : sum_tolerance(products(problem, results));
    // Both factors of each product are off by up to 2^-11, evenly: 2^-11 sqrt(2 / 3) of the result, root mean square.
    if (backend.accumulation() == kernels::Accumulation::tf32) sums += 2 * 0x1p-11;
    // Likewise of 8 bits: by up to 2^-4 each, a gradient by 2^-3.
    if (backend.algorithm().starts_with("fp8")) sums += 0x1p-4 + (problem.pass == Pass::forward ? 0x1p-4 : 0x1p-3);
    if (problem.type == DataType::f32) return sums;
    const double rounding = 2 * unit_roundoff(problem.type);
    if (problem.pass == Pass::update || backend.accumulation() == kernels::Accumulation::f32) return sums + rounding;
    double length = products(problem, results);
    if (backend.accumulation() == kernels::Accumulation::chunked) length = std::min(length, chunk(problem));
    return sums + rounding + unit_roundoff(DataType::f16) * std::sqrt(length);
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
    return check(problem, backends, seed, reference(), kernels::any_scratch);
}

std::vector<Checked> check(const Problem& problem, std::span<const kernels::Backend* const> backends,
                           std::uint64_t seed, const kernels::Backend& trusted, Bytes limit) {
    std::unique_ptr<Arena> arena;
    const std::vector<float> expected = result(problem, trusted, arena, seed, limit);
    std::vector<Checked> checks;
    for (const kernels::Backend* backend : backends) {
        checks.push_back({difference(expected, result(problem, *backend, arena, seed, limit)),
                          tolerance(problem, *backend, expected.size())});
    }
    return checks;
}

}  // namespace rehearse::bench
