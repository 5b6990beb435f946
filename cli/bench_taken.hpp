// SPDX-License-Identifier: Apache-2.0
// Which of the kernels that bench times a training run takes.
#pragma once

#include "cli/bench.hpp"
#include "kernels/choices.hpp"

namespace rehearse::cli {

/// What a run that asks for no kernel by name takes for a problem: what is tuned, else the first that runs all passes.
class TakenByRun {
public:
    TakenByRun(const Problem& problem, const kernels::KernelSelection& selection);

    /// Of a library that is taken whole, each of its algorithms but Winograd's: it takes the one that it thinks
    /// fastest.
    bool is(const kernels::Backend& backend) const;

private:
    const kernels::Backend* taken_ = nullptr;  // null: nothing runs all passes
};

/// What `bench --tune` has kept of this host, and nothing where it cannot be read.
kernels::Choices tuned_here(Bytes scratch_limit);

/// Adds to a row of Google Benchmark's what it does not say of a kernel, for `calibrate --samples`.
void add_kernel(const BenchRow& row, Json& each);

}  // namespace rehearse::cli
