// SPDX-License-Identifier: Apache-2.0
#include "cli/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "cli/bench_options.hpp"
#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

#if !REHEARSE_HAS_SIM
int bench_library(const BenchOptions&) {
    throw BackendError("bench nccl-table: this build has no SimGrid (REHEARSE_SIM=ON)");
}
#endif

#if !REHEARSE_HAS_MPI
int bench_files(const BenchOptions&) { throw BackendError("bench files: this build has no MPI (REHEARSE_MPI=ON)"); }
#endif

namespace {

struct Kind {
    std::string_view name;
    int (*run)(const BenchOptions& options);
};
constexpr std::array kinds{Kind{"conv", bench_kernels},        Kind{"gemm", bench_kernels},
                           Kind{"layer", bench_kernels},       Kind{"attention", bench_kernels},
                           Kind{"stream", bench_stream},       Kind{"peak", bench_peak},
                           Kind{"embedding", bench_embedding}, Kind{"files", bench_files},
                           Kind{"tuned", bench_tuned},         Kind{"nccl-table", bench_library}};

void check_filter(const BenchOptions& options) {
    constexpr std::array filtered{"conv", "gemm", "layer", "attention", "stream"};
    const bool device_roofs = options.kind == "stream" && options.device != "cpu";
    if (options.filter.empty() || (std::ranges::count(filtered, options.kind) > 0 && !device_roofs)) return;
    throw InputError(fmt::format("--filter: not of bench {}{}", options.kind, device_roofs ? " of a device" : ""));
}

void check_layout(const BenchOptions& options) {
    if (options.layout == "nchw") return;
    if (options.kind != "conv" && options.kind != "layer") {
        throw InputError(
            fmt::format("--layout {}: of bench conv and bench layer, not of bench {}", options.layout, options.kind));
    }
    if (options.device == "cpu") {
        throw InputError(fmt::format("--layout {}: of a device: add --device cuda", options.layout));
    }
}

int start(BenchOptions& options, const CommandLine& app) {
    options.kind = options.arguments.empty() ? "" : options.arguments.front();
    if (std::ranges::count(bench_kinds(), options.kind) > 0) check_options_of_kind(options, app);
    check_filter(options);
    check_layout(options);
    std::vector<std::string_view> words;
    for (const Kind& kind : kinds) {
        words.push_back(kind.name);
        if (kind.name != options.kind) continue;
        options.arguments.erase(options.arguments.begin());
        check_writable(options.out, options.common);
        check_writable(options.common.output, options.common);
        check_pictures(options);
        if (options.device == "cpu" || kind.run == bench_kernels) return kind.run(options);
        if (kind.run == bench_stream || kind.run == bench_peak) return bench_device_roofs(options);
        throw InputError(fmt::format("bench {}: not of a device", options.kind));
    }
    if (std::ranges::count(message_kinds(), std::string_view{options.kind}) > 0) {
        if (options.device != "cpu") throw InputError(fmt::format("bench {}: not of a device", options.kind));
        if (options.arguments.size() > 1)
            throw InputError(fmt::format("bench {}: takes no problem strings", options.kind));
        return bench_messages(options.kind, {options.common, options.messages, options.algorithm, options.out,
                                             options.check, options.seed, options.budget, options.rounds});
    }
    for (const std::string_view kind : message_kinds()) words.push_back(kind);
    throw InputError(
        fmt::format("bench '{}': one of {}{}", options.kind, join(words), did_you_mean(options.kind, words)));
}

void add_pictures(CommandLine& app, BenchOptions& options) {
    constexpr const char* files = "FILE.svg|png|pdf";
    app.add_option("--roofline", options.roofline, "draw the roofs of this host and the measured rates under them")
        ->option_text(files);
    app.add_option("--winners", options.winners, "of convolutions: draw which algorithm wins, by filter and shape")
        ->option_text(files);
    app.add_option("--plot", options.plot, "of stream: draw bandwidth over size (with --sweep)")->option_text(files);
    app.add_flag("--dark", options.dark, "pictures on dark ground");
}

void add_library(CommandLine& app, LibraryBench& library) {
    app.add_option("--machine", library.machine, "of nccl-table, where it is needed: whose table it is")
        ->option_text("NAME|FILE.toml");
    app.add_option("--nodes", library.nodes, "of nccl-table: at least 1")
        ->positive()
        ->capture_default_str()
        ->option_text("N");
    app.add_option("--devices-per-node", library.devices_per_node,
                   "of nccl-table: the first of each node, at least 1; default all")
        ->positive()
        ->option_text("K");
    app.add_option(
           "--op", library.operation,
           "of nccl-table: all_reduce, all_gather, reduce_scatter, broadcast, all_to_all or sendrecv (each rank to "
           "the next)")
        ->capture_default_str()
        ->option_text("OP");
    app.add_option("--force-algorithm", library.algorithm,
                   "of nccl-table: as NCCL_ALGO (ring, tree, nvls, ...); default NCCL's choice")
        ->option_text("NAME");
    app.add_option("--force-protocol", library.protocol,
                   "of nccl-table: as NCCL_PROTO (ll, ll128, simple); default NCCL's choice")
        ->option_text("NAME");
    app.add_option("--compare", library.compare, "of nccl-table: what nccl-tests printed, beside what it would have")
        ->option_text("FILE");
    app.add_option("--machine-out", library.machine_out,
                   "of nccl-table: a machine file that extends --machine and has its library's figures as --compare "
                   "measured them, what they leave as their error")
        ->option_text("FILE.toml");
}

void add_positive(CommandLine& app, const std::string& name, int& value, const std::string& help) {
    app.add_option(name, value, help)->positive()->capture_default_str()->option_text("N");
}

}  // namespace

std::vector<std::string> bench_kinds() {
    std::vector<std::string> all;
    for (const Kind& kind : kinds) all.emplace_back(kind.name);
    for (const std::string_view kind : message_kinds()) all.emplace_back(kind);
    return all;
}

Run add_bench(CommandLine& app) {
    const auto options = std::make_shared<BenchOptions>();
    app.add_option("KIND", options->arguments,
                   "conv, gemm, layer, attention (then problem strings), embedding (each way to update its rows), "
                   "files FOLDER (samples "
                   "on its drive), "
                   "stream, peak, "
                   "tuned (what --tune has kept) or "
                   "nccl-table "
                   "(what nccl-tests would print on --machine); "
                   "under mpirun " +
                       join(message_kinds()))
        ->option_text("KIND [PROBLEM...]");
    app.add_option(
           "--suite", options->suite,
           "every distinct step of training a network or both climate ones, or a list: deepbench-train, crossover")
        ->option_text("NAME|climate|FILE.onnx");
    app.add_option("--filter", options->filter, "only problems that it matches; of stream: levels, as memory")
        ->option_text("REGEX");
    app.add_option("--batch", options->batches, "of a network")->delimiter(',')->option_text("N[,N...]");
    add_fuse(app, options->fuse);
    app.add_option("--device", options->device, "cuda: this host's GPU, timed by its own clock")
        ->capture_default_str()
        ->option_text("cpu|cuda");
    add_choice<std::string>(app, "--layout", options->layout, {{"nchw", "nchw"}, {"nhwc", "nhwc"}},
                            "of conv with --device: how tensors lie, nhwc: a pixel's channels together");
    app.add_option("--backend", options->backend, "only this one")->option_text("NAME");
    app.add_option("--algorithm", options->algorithm, "only this one; of collectives any of a list, with mpi and auto")
        ->option_text("NAME[,NAME...]");
    using kernels::Accumulation;
    add_choice<std::optional<Accumulation>>(
        app, "--accumulate", options->accumulate,
        {{"f32", Accumulation::f32},
         {"chunked", Accumulation::chunked},
         {"f16", Accumulation::f16},
         {"tf32", Accumulation::tf32}},
        "only those that sum products of f16, or of f32 on a GPU's tensor cores, so");
    app.add_flag("--list", options->list, "print the problems, one a line, and time none");
    app.add_flag("!--no-check", options->check, "do not hold the results to the reference first");
    app.add_flag("--tune", options->tune, "keep the fastest implementation of each, for run and calibrate");
    add_scratch_limit(app, options->scratch_limit);
    app.add_option("--threads", options->threads, "of stream, peak and embedding; 1 and all of the host's if not given")
        ->positive()
        ->delimiter(',')
        ->option_text("N[,N...]");
    app.add_flag("--sweep", options->sweep, "of stream: sizes between the levels too");
    app.add_option("--skew", options->skew,
                   "of embedding: rows are picked by Zipf's law with this exponent, at least 0; 0: all alike")
        ->capture_default_str()
        ->option_text("S");
    app.add_option("--seed", options->seed, "of the data")->capture_default_str()->option_text("N");
    app.add_option("--out", options->out, "Google Benchmark's JSON, for calibrate")->option_text("FILE.json");
    add_positive(app, "--rounds", options->rounds, "how often everything is timed in turn");
    add_pictures(app, *options);
    add_message_options(app, options->messages);
    add_library(app, options->library);
    add_budget(app, options->budget);
    add_common(app, options->common);
    return [options, &app] {
        options->library.most_given = app.has("--max");
        return start(*options, app);
    };
}

}  // namespace rehearse::cli
