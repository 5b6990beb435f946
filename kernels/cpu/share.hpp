// SPDX-License-Identifier: Apache-2.0
// Rows or parameters shared among threads in equal stretches, so that a sum has the same order run after run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/cpu/algorithm.hpp"

namespace rehearse::kernels::cpu {

struct Stretch {
    std::int64_t begin, end;
};

// The part of [0, count) of one of `workers`, in steps of `grain`.
inline Stretch stretch_of(std::int64_t count, std::int64_t grain, std::int64_t worker, std::int64_t workers) {
    const std::int64_t each = divide_up(divide_up(count, grain), workers) * grain;
    return {std::min(worker * each, count), std::min((worker + 1) * each, count)};
}

// act(worker, part of [0, count)) on as many threads.
template <typename Act>
void share(std::int64_t count, std::int64_t grain, std::int64_t workers, Act act) {
#pragma omp parallel for schedule(static)
    for (std::int64_t worker = 0; worker < workers; ++worker) {
        const Stretch part = stretch_of(count, grain, worker, workers);
        if (part.begin < part.end) act(worker, part);
    }
}

/// A kernel that knows how many threads there are.
class Shared : public CheckedKernel {
public:
    using CheckedKernel::CheckedKernel;

protected:
    const std::int64_t workers_ = threads();
};

/// Embedding and EmbeddingBag; AdamUpdate and LambUpdate.
std::unique_ptr<Kernel> make_table(const Problem& problem);
std::unique_ptr<Kernel> make_optimizer(const Problem& problem);
/// GroupedMatMul.
std::unique_ptr<Kernel> make_grouped(const Problem& problem);

}  // namespace rehearse::kernels::cpu
