// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/calibrate_device.hpp"
#include "cli/calibrate_host.hpp"
#include "cli/calibrate_kernels.hpp"
#include "cli/calibrate_options.hpp"
#include "cli/calibrate_samples.hpp"
#include "cli/calibrate_trace.hpp"
#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "core/error.hpp"
#include "picture/write.hpp"

namespace rehearse::cli {

namespace {

void check(const CalibrateOptions& options) {
    for (const std::int64_t batch : options.batches) {
        if (batch < 1) throw InputError(fmt::format("--batch {}: at least 1", batch));
    }
    check_writable(options.machine_out, options.common);
    check_writable(options.samples_out, options.common);
    check_writable(options.common.output, options.common);
    check_writable(options.plot, options.common);
    if (!options.plot.empty()) picture::check_suffix(options.plot);
}

int start(const CalibrateOptions& options) {
    if (options.nodes > 0 && options.samples.empty())
        throw InputError(fmt::format("--nodes {}: it goes with --samples", options.nodes));
    if (!options.traces.empty()) {
        if (!options.samples.empty() || !options.kernels.empty())
            throw InputError("--trace, --samples and --kernels: one at a time, with --machine-out between");
        return calibrate_trace({options.traces, options.models, options.batches, options.fuse, options.machine,
                                options.machine_out, options.precision, options.optimizer, options.between},
                               options.common);
    }
    if (options.device != "cpu") {
        check_writable(options.machine_out, options.common);
        return calibrate_device(
            {options.device, options.models, options.batches, options.fuse, options.machine_out, options.scratch_limit},
            options.common);
    }
    check(options);
    if (!options.kernels.empty()) {
        if (!options.samples.empty())
            throw InputError("--kernels and --samples: one after the other, each with its own --machine-out");
        return calibrate_kernels({options.kernels, options.machine, options.machine_out}, options.common);
    }
    if (!options.samples.empty()) return calibrate_samples(options);
    return calibrate_host(options);
}

}  // namespace

Run add_calibrate(CommandLine& app) {
    const auto options = std::make_shared<CalibrateOptions>();
    app.add_flag("--quick", options->quick, "without whole training steps, which tell how far prices are off in sum");
    app.add_option("--device", options->device,
                   "cuda: this host's GPU, written to --machine-out as a machine of its own")
        ->capture_default_str()
        ->option_text("cpu|cuda");
    app.add_option("--model", options->models, "networks whose steps are measured")
        ->delimiter(',')
        ->option_text("NAME[,NAME...]");
    app.add_option("--plan", options->plans, "how it is split; again for each plan whose steps are measured")
        ->option_text("PLAN")
        ->allow_extra_args(false);
    app.add_option("--batch", options->batches, "samples a rank")->delimiter(',')->option_text("N[,N...]");
    add_fuse(app, options->fuse);
    app.add_option("--backend", options->backend, "use only this one (onednn, cpu, reference)")->option_text("NAME");
    app.add_option("--algorithm", options->algorithm, "where it applies: direct, im2col, winograd, fft, ...")
        ->option_text("NAME");
    add_tune(app, options->tune, {{"on", Tune::on}, {"off", Tune::off}, {"again", Tune::again}},
             "find the fastest implementation of each step first, where that is not known yet, and keep it for run");
    add_scratch_limit(app, options->scratch_limit);
    app.add_option(
           "--samples", options->samples,
           "measure nothing: take what these files hold (Google Benchmark's JSON, rehearse bench --out, the text "
           "of nccl-tests and OSU)")
        ->option_text("FILE...");
    app.add_option("--trace", options->traces,
                   "measure nothing: prices of the layers of --model at --batch out of PyTorch profiler traces, one a "
                   "rank (Chrome JSON, gzip or not)")
        ->option_text("FILE.json[.gz]...");
    add_precision(app, options->precision);
    add_optimizer(app, options->optimizer);
    app.add_option("--kernels", options->kernels,
                   "measure nothing: correct the prices of --machine by some 20 kernels that were measured on its "
                   "devices, a factor a kind of operator (Google Benchmark's JSON, or CSV with problem,time_us)")
        ->option_text("FILE.json|csv...");
    app.add_option("--machine", options->machine,
                   "with --samples, --trace or --kernels: the machine that they were measured on")
        ->option_text("NAME|FILE.toml");
    add_choice<std::optional<calibrate::Between>>(
        app, "--between", options->between,
        {{"nodes", calibrate::Between::nodes}, {"devices", calibrate::Between::devices}},
        "with --samples or --trace: whose messages they are, where the files do not tell");
    app.add_option("--ranks", options->ranks,
                   "with --samples: of OSU's collectives, and of nccl-tests without lines '# Rank'")
        ->option_text("N");
    app.add_option("--nodes", options->nodes, "with --samples: on how many the ranks were, as many on each")
        ->option_text("N");
    app.add_option("--machine-out", options->machine_out, "write the machine here, not to the place of this-host")
        ->option_text("FILE.toml");
    app.add_option("--out", options->samples_out, "also Google Benchmark's JSON of the samples")
        ->option_text("FILE.json");
    app.add_flag("--report", options->report, "also how far the fits are from what was measured");
    app.add_option("--plot", options->plot, "messages as measured and as fitted")->option_text("FILE.svg|png|pdf");
    add_choice<Transport>(app, "--transport", options->transport,
                          {{"mpi", Transport::mpi}, {"sockets", Transport::sockets}},
                          "whose messages between ranks are measured: MPI's, or those of sockets as gloo sends them, "
                          "PyTorch's library on processors");
    add_budget(app, options->budget);
    add_common(app, options->common);
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
