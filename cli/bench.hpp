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
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "kernels/backend.hpp"

namespace rehearse::cli {

/// Of bench nccl-table.
struct LibraryBench {
    std::string machine, operation = "all_reduce", algorithm, protocol, compare, machine_out;
    std::int64_t nodes = 1, devices_per_node = 0;  // 0: all
    bool most_given = false;                       // --max
};

/// Large: one member an option of the command line.
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
    double skew = 0;  // of embedding: the exponent of Zipf's law
    std::optional<kernels::Accumulation> accumulate;
    std::string device = "cpu", layout = "nchw";
    MessageOptions messages;
    LibraryBench library;
};

/// Where rows were measured: threads of the host's cores, or, with 0 of them, a device.
struct BenchPlace {
    int threads = 1;
    std::string name;  // "8 threads of AMD EPYC ..."
};

/// What bench times: "conv", "stream", "allreduce" and so on.
std::vector<std::string> bench_kinds();
int bench_kernels(const BenchOptions& options);
int bench_stream(const BenchOptions& options);
int bench_peak(const BenchOptions& options);
/// What nccl-tests would print on a machine; BackendError where the build has no simulation.
int bench_library(const BenchOptions& options);
/// Samples in files; BackendError where the build has no MPI, with which `run` comes.
int bench_files(const BenchOptions& options);
int bench_embedding(const BenchOptions& options);
int bench_tuned(const BenchOptions& options);
/// The kernels of a device, and what it does at the most; InputError where there is no such device.
int bench_device(const BenchOptions& options, const std::vector<calibrate::Needed>& problems);
int bench_device_roofs(const BenchOptions& options);

/// A problem on one implementation, timed.
struct BenchRow {
    bench::Sample sample;
    bool checked = false;
    double error = 0;                // against the reference
    std::int64_t checked_batch = 0;  // fewer samples than timed, where the reference would take long
    bool best = false;               // of its problem
    Bytes scratch;                   // memory beyond the tensors
    kernels::Accumulation sums = kernels::Accumulation::f32;
    bool taken = false;  // by a run that asks for no kernel by name
    Json clocks{};       // of a device, as clocks_document() has them
};

/// The problem with as many samples as plain loops finish in some seconds: so many operations, but one sample at least,
/// and whole groups of what is routed.
Problem small_enough(Problem problem, Flops most = Flops{5e9});
void mark_best(std::vector<BenchRow>& rows);

/// Table and document of the rows.
Report bench_report(const BenchOptions& options, const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings,
                    const BenchPlace& place);

/// --roofline, --winners and --plot: InputError or BackendError before the work where they cannot be written.
void check_pictures(const BenchOptions& options);
void draw_roofline(const BenchOptions& options, const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings,
                   const BenchPlace& place);
void draw_winners(const BenchOptions& options, const std::vector<BenchRow>& rows, const BenchPlace& place);
void draw_streams(const BenchOptions& options, const std::vector<bench::StreamSample>& samples);

}  // namespace rehearse::cli
