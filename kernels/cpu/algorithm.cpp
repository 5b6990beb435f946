// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/algorithm.hpp"

#include <omp.h>

#include <new>

#include "kernels/reference/backend.hpp"
#include "kernels/storage.hpp"
#include "kernels/support.hpp"
#include "kernels/transposed.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::align_val_t line{64};

struct Free {
    void operator()(float* data) const { ::operator delete(data, line); }
};

float* thread_scratch(std::int64_t floats) {
    thread_local std::unique_ptr<float, Free> block;
    thread_local std::int64_t size = 0;
    if (size < floats) {
        block.reset();
        size = 0;
        block.reset(static_cast<float*>(::operator new(static_cast<std::size_t>(floats) * sizeof(float), line)));
        size = floats;
    }
    return block.get();
}

}  // namespace

Support Algorithm::supports(const Problem& problem) const {
    if (Support any = supported_by_any(problem); !any.yes) return any;
    if (is_mirrored(problem)) return supports(mirrored_problem(problem));
    if (std::string reason = refusal(problem); !reason.empty()) return {.yes = false, .reason = std::move(reason)};
    return {};
}

std::unique_ptr<Kernel> Algorithm::prepare(const Problem& problem) const {
    require_supported(*this, problem);
    if (is_mirrored(problem)) {
        auto kernel = transposed(in_f32(problem), make(mirrored_problem(in_f32(problem))));
        return problem.type == DataType::f32 ? std::move(kernel) : stored_as(problem, 0, std::move(kernel));
    }
    if (problem.pass == Pass::update && !updated(problem.op)) return reference::backend().prepare(problem);
    // An update may bring gradients of another type.
    if (problem.type == DataType::f32 && problem.pass != Pass::update) return make(problem);
    if (auto half = make_half(problem)) return half;
    return stored_as(problem, kept(problem.op, problem.batch), make(in_f32(problem)));
}

void CheckedKernel::run(const Buffers& buffers) {
    sizes_.check(buffers);
    if (only_data_ && !wants_input_gradient(buffers)) return;
    compute(buffers, thread_scratch(scratch_));
}

void CheckedKernel::reserve(std::int64_t floats) {
    scratch_ = floats;
    thread_scratch(floats);
}

std::int64_t threads() { return omp_get_max_threads(); }

}  // namespace rehearse::kernels::cpu
