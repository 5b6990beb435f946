// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/algorithm.hpp"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <omp.h>

#include "kernels/cpu/revision.hpp"
#include "kernels/memory.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/storage.hpp"
#include "kernels/support.hpp"
#include "kernels/transposed.hpp"

namespace rehearse::kernels::cpu {
namespace {

float* thread_scratch(std::int64_t floats) {
    thread_local HostMemory block;
    thread_local std::int64_t size = 0;
    if (size < floats) {
        block.reset();
        size = 0;
        block = allocate_host(static_cast<std::size_t>(floats) * sizeof(float));
        size = floats;
    }
    return reinterpret_cast<float*>(block.get());
}

}  // namespace

Support Algorithm::supports(const Problem& problem) const {
    if (Support any = supported_by_any(problem); !any.yes) return any;
    if (is_mirrored(problem)) return supports(mirrored_problem(in_f32(problem)));  // as made() makes it
    if (std::string reason = refusal(problem); !reason.empty()) return {.yes = false, .reason = std::move(reason)};
    return {};
}

std::unique_ptr<Kernel> Algorithm::prepare_within(const Problem& problem, Bytes limit) const {
    require_supported(*this, problem);
    if (problem.pass == Pass::update && !updated(problem.op)) return reference::backend().prepare(problem);
    std::unique_ptr<Kernel> kernel = made(problem, limit);
    // What the kernel itself takes; tensors that are converted for it lie elsewhere (storage.cpp).
    if (problem.type == DataType::f32) {
        thread_scratch(static_cast<std::int64_t>(kernel->scratch() / size_of(DataType::f32)));
    }
    return kernel;
}

std::unique_ptr<Kernel> Algorithm::made(const Problem& problem, Bytes limit) const {
    if (is_mirrored(problem)) {
        auto kernel = transposed(in_f32(problem), make_within(mirrored_problem(in_f32(problem)), limit));
        return problem.type == DataType::f32 ? std::move(kernel) : stored_as(problem, 0, std::move(kernel));
    }
    // An update may bring gradients of another type.
    if (problem.type == DataType::f32 && problem.pass != Pass::update) return make_within(problem, limit);
    if (auto half = make_half(problem)) return half;
    return stored_as(problem, workspace(problem.op, problem.batch), make_within(in_f32(problem), limit));
}

Bytes Algorithm::scratch(const Problem& problem, Bytes limit) const {
    return problem.pass == Pass::update && !updated(problem.op) ? Bytes{} : made(problem, limit)->scratch();
}

std::string Algorithm::version() const {
    const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
    return fmt::format("{} {}", revision(), hwy::TargetName(usable & -usable));  // the lowest bit is the best target
}

std::int64_t Algorithm::kept(const Op& op, std::int64_t batch) const {
    return reference::backend().workspace(op, batch);
}

CheckedKernel::CheckedKernel(const Problem& problem)
    : CheckedKernel(problem, reference::backend().workspace(problem.op, problem.batch)) {}

void CheckedKernel::run(const Buffers& buffers) {
    sizes_.check(buffers);
    if (only_data_ && !wants_input_gradient(buffers)) return;
    compute(buffers, thread_scratch(scratch_));
}

std::int64_t threads() { return omp_get_max_threads(); }

}  // namespace rehearse::kernels::cpu
