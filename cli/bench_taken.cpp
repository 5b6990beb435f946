// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_taken.hpp"

#include "core/error.hpp"
#include "kernels/threads.hpp"
#include "kernels/tuned/store.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

TakenByRun::TakenByRun(const Problem& problem, const kernels::KernelSelection& selection) {
    try {
        taken_ = of(kernels::choose_passes(problem.op, problem.batch, problem.type, selection), problem.pass).backend;
    } catch (const InputError&) {  // nothing runs all passes
    }
}

bool TakenByRun::is(const kernels::Backend& backend) const {
    if (taken_ == nullptr || &backend == taken_) return taken_ != nullptr;
    return taken_->algorithm().empty() && backend.name() == taken_->name() && !is_algorithm(backend, "winograd");
}

kernels::Choices tuned_here(Bytes scratch_limit) {
    if (!kernels::tuned::absent().empty()) return {};
    try {
        const std::string fingerprint = kernels::tuned::fingerprint(kernels::threads_now());
        return kernels::tuned::choices(kernels::tuned::load(models::tuned_path(), fingerprint), scratch_limit);
    } catch (const InputError&) {  // a run refuses that file
        return {};
    }
}

void add_kernel(const BenchRow& row, Json& each) {
    each["accumulation"] = kernels::to_string(row.sums);
    each["taken"] = row.taken;
    if (row.checked) each["checked"] = row.error;
}

}  // namespace rehearse::cli
