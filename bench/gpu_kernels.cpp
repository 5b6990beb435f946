// SPDX-License-Identifier: Apache-2.0
// Times our convolutions on this machine's GPU: problem strings on stdin, one a line, CSV on stdout. Random buffers
// stay on the GPU and rotate through more than twice its cache; each result is checked first. Times are the GPU's own,
// the median of `rounds` rounds. For scripts/gpu.sh.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "bench/check.hpp"
#include "core/error.hpp"
#include "kernels/convert.hpp"
#include "kernels/cuda/convolution.hpp"
#include "kernels/reference/backend.hpp"

namespace rehearse::bench {
namespace {

using kernels::cuda::Engine;
using kernels::cuda::Memory;

constexpr int rounds = 7, runs = 10;
constexpr double most_checked = 5e9;  // operations of the plain loops that results are held to

// One set of a problem's tensors on the GPU, all of them random: what a pass writes, too.
struct Set {
    std::vector<Memory> memory;
    kernels::Buffers buffers;
};

kernels::View on_gpu(Engine& engine, std::int64_t count, DataType type, std::minstd_rand& random,
                     std::vector<Memory>& memory) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = uniform(random);
    std::vector<std::uint16_t> halves(type == DataType::f32 ? 0 : values.size());
    const kernels::View stored{type == DataType::f32 ? static_cast<void*>(values.data()) : halves.data(), values.size(),
                               type};
    if (type != DataType::f32) kernels::convert(kernels::ConstView(values), stored);
    memory.push_back(engine.allocate(stored.size_bytes()));
    engine.copy_in(memory.back().get(), stored.bytes(), stored.size_bytes());
    return {memory.back().get(), stored.size(), type};
}

Set make_set(Engine& engine, const Problem& problem, std::minstd_rand& random) {
    Set set;
    const auto tensor = [&](std::int64_t count) { return on_gpu(engine, count, problem.type, random, set.memory); };
    const std::int64_t input = problem.batch * elements(input_shapes(problem.op).front());
    const std::int64_t output = problem.batch * elements(output_shape(problem.op));
    set.buffers.src.emplace_back(tensor(input));
    set.buffers.diff_src.push_back(tensor(input));
    set.buffers.dst = tensor(output);
    set.buffers.diff_dst = tensor(output);
    set.buffers.weights = tensor(parameters(problem.op));
    set.buffers.diff_weights = tensor(parameters(problem.op));
    return set;
}

double median_seconds(Engine& engine, const Problem& problem, kernels::Kernel& kernel) {
    std::minstd_rand random(1);
    std::vector<Set> sets;
    const double bytes = bytes_moved(problem.op, problem.pass, problem.type, problem.batch).value;
    const int count = std::clamp(static_cast<int>(2 * static_cast<double>(engine.cache()) / bytes) + 1, 2, 64);
    for (int i = 0; i < count; ++i) sets.push_back(make_set(engine, problem, random));
    std::vector<double> seconds;
    std::size_t next = 0;
    for (int round = 0; round <= rounds; ++round) {
        const double all = engine.seconds([&] {
            for (int i = 0; i < runs; ++i) kernel.run(sets[next++ % sets.size()].buffers);
        });
        if (round > 0) seconds.push_back(all / runs);  // the first warms up
    }
    std::ranges::nth_element(seconds, seconds.begin() + rounds / 2);
    return seconds[rounds / 2];
}

// Of plain loops it is checked at a batch that they can do.
Problem checked(Problem problem) {
    const double work = flops(problem.op, problem.pass, 1).value;
    problem.batch = std::clamp<std::int64_t>(static_cast<std::int64_t>(most_checked / work), 1, problem.batch);
    return problem;
}

int run() {
    Engine& engine = kernels::cuda::gpu();
    if (!engine.refusal().empty()) throw BackendError(engine.refusal());
    const auto all = kernels::cuda::convolutions(engine);
    fmt::print("device,problem,algorithm,error,tolerance,seconds,tflops,scratch_bytes\n");
    bool right = true;
    for (std::string line; std::getline(std::cin, line);) {
        if (line.empty()) continue;
        const Problem problem = parse_problem(line);
        for (const auto& backend : all) {
            if (const auto support = backend->supports(problem); !support.yes) {
                fmt::print(stderr, "{}: {}: {}\n", line, backend->algorithm(), support.reason);
                continue;
            }
            const auto host = kernels::cuda::staged(*backend, engine);
            const kernels::Backend* const one[] = {host.get()};
            const Checked result = check(checked(problem), one, 1).front();
            right = right && result.error <= result.tolerance;
            const auto kernel = backend->prepare(problem);
            const double seconds = median_seconds(engine, problem, *kernel);
            fmt::print("\"{}\",{},{},{:.3g},{:.3g},{:.6g},{:.4g},{:.0f}\n", engine.version(), line,
                       backend->algorithm(), result.error, result.tolerance, seconds,
                       flops(problem.op, problem.pass, problem.batch).value / seconds / 1e12, kernel->scratch().value);
        }
    }
    if (!right) fmt::print(stderr, "some results are wrong\n");
    return right ? 0 : 1;
}

}  // namespace
}  // namespace rehearse::bench

int main() {
    try {
        return rehearse::bench::run();
    } catch (const rehearse::InputError& error) {
        fmt::print(stderr, "gpu_kernels: {}\n", error.what());
        return 2;
    } catch (const rehearse::BackendError& error) {
        fmt::print(stderr, "gpu_kernels: {}\n", error.what());
        return 3;
    }
}
