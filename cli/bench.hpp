// SPDX-License-Identifier: Apache-2.0
// What the kinds of `rehearse bench` share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/ceilings.hpp"
#include "bench/compute.hpp"
#include "cli/bench_messages.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"
#include "kernels/backend.hpp"

namespace rehearse::cli {

struct BenchOptions {
    Common common;
    std::string kind;                    // conv, gemm, layer, stream, peak
    std::vector<std::string> arguments;  // the kind, then problem strings
    std::string suite, filter, backend, algorithm, out, roofline, winners, plot;
    std::string fuse{default_fuse};
    std::vector<std::int64_t> batches{8};
    std::vector<int> threads;  // of stream and peak; empty: one and all
    bool check = true, sweep = false, dark = false, tune = false, list = false;
    Bytes scratch_limit = kernels::default_scratch_limit;
    std::uint64_t seed = 1;
    Seconds budget{20};
    int rounds = 7;
    std::optional<kernels::Accumulation> accumulate;
    MessageOptions messages;
};

int bench_kernels(const BenchOptions& options);
int bench_stream(const BenchOptions& options);
int bench_peak(const BenchOptions& options);
int bench_tuned(const BenchOptions& options);

/// A problem on one implementation, timed.
struct BenchRow {
    bench::Sample sample;
    bool checked = false;
    double error = 0;                // against the reference
    std::int64_t checked_batch = 0;  // fewer samples than timed, where the reference would take long
    bool best = false;               // of its problem
    Bytes scratch;                   // memory beyond the tensors
};

/// The roof of a problem: its type's peak, or that of f32 where this CPU has no arithmetic of the type.
const bench::Peak& roof_of(const bench::Ceilings& ceilings, DataType type);

/// Table and document of the rows.
Report bench_report(const BenchOptions& options, const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings,
                    int threads);

/// --roofline, --winners and --plot: InputError or BackendError before the work where they cannot be written.
void check_pictures(const BenchOptions& options);
void draw_roofline(const BenchOptions& options, const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings,
                   int threads);
void draw_winners(const BenchOptions& options, const std::vector<BenchRow>& rows, int threads);
void draw_streams(const BenchOptions& options, const std::vector<bench::StreamSample>& samples);

}  // namespace rehearse::cli
