// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <memory>

#include "bench/compute.hpp"
#include "bench/host.hpp"
#include "calibrate/problems.hpp"
#include "calibrate/quick.hpp"
#include "cli/calibrate_device.hpp"
#include "cli/command.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"
#if REHEARSE_HAS_MPI
#include "bench/messages.hpp"
#include "run/train.hpp"
#endif

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    Common common;
    bool quick = false;
    std::vector<std::string> models{"lenet5", "resnet32"};
    std::vector<std::int64_t> batches{32};
    std::string backend, algorithm, machine_out, samples_out, fuse{default_fuse};
    Seconds budget{30};
    std::string device = "cpu";
    Tune tune = Tune::on;
    Bytes scratch_limit = kernels::default_scratch_limit;
};

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
    return name.data();
}

void check(const Options& options) {
    if (!options.quick) {
        throw InputError(
            "calibrate: only --quick is there in this version (compute, memory and messages of this host)");
    }
    for (const std::int64_t batch : options.batches) {
        if (batch < 1) throw InputError(fmt::format("--batch {}: at least 1", batch));
    }
    check_writable(options.machine_out, options.common);
    check_writable(options.samples_out, options.common);
    check_writable(options.common.output, options.common);
}

// What was measured before stays, as far as it was on this host and is not measured again.
Machine known_host(const Options& options) {
    if (options.machine_out.empty() && std::filesystem::exists(models::this_host_path())) {
        try {
            return models::load_machine("this-host");
        } catch (const InputError& error) {
            talk(options.common, fmt::format("starting anew: {}", error.what()));
        }
    }
    return models::detect_this_host();
}

// Of data-parallel training; on how many ranks makes no difference to what each computes.
std::vector<calibrate::Needed> problems_of(const Options& options, const Machine& host) {
    std::vector<Schedule> schedules;
    for (const std::string& name : options.models) {
        const Network network = load_network(name, options.fuse);
        for (const std::int64_t batch : options.batches) {
            schedules.push_back(schedule::make_schedule(network, host, schedule::parse_plan("data"),
                                                        {.devices = 1, .batch_per_device = batch}));
        }
    }
    return calibrate::problems(schedules);
}

std::string save(const Options& options, const Machine& host) {
    const std::string path = options.machine_out.empty() ? models::this_host_path() : options.machine_out;
    if (options.machine_out.empty()) {
        std::error_code error;
        std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), error);
        if (error) throw InputError(fmt::format("{}: its folder cannot be made: {}", path, error.message()));
    }
    replace_file(path, models::to_toml(host));
    return path;
}

Report report_of(const Options& options, const calibrate::Samples& samples, const Machine& host,
                 const std::string& path) {
    Report report{document("calibration", {{"models", options.models}, {"batches", options.batches}}), {}, ""};
    report.document["file"] = path;
    report.document["ranks"] = samples.ranks;
    Json rows = Json::array();
    for (const calibrate::Sample& s : samples.compute) {
        const Bytes bytes = bytes_moved(s.problem.op, s.problem.pass, s.problem.type, s.problem.batch);
        rows.push_back({{"problem", to_string(s.problem)},
                        {"backend", s.backend},
                        {"median_s", s.median.value},
                        {"error", s.error},
                        {"samples", s.count},
                        {"flops_per_s", (flops(s.problem.op, s.problem.pass, s.problem.batch) / s.median).value},
                        {"bytes_per_s", (bytes / s.median).value}});
    }
    report.document["samples"] = rows;
    report.tables = {{"samples",
                      fmt::format("measured on {} ranks at once", samples.ranks),
                      {{"problem", "problem"},
                       {"backend", "backend"},
                       {"median_s", "median", Show::seconds},
                       {"error", "spread", Show::percent},
                       {"flops_per_s", "rate", Show::flop_rate}}}};
    const DeviceClass& core = host.classes.at(0);
    report.footer = fmt::format("a core: {} f32, {} of memory bandwidth, {} to start a kernel\n",
                                to_string(samples.figures.peak.median), to_string(core.memory_bandwidth.value),
                                to_string(core.launch.value));
    if (samples.messages) {
        report.footer +=
            fmt::format("a message between ranks: {} + bytes / ({:.3g} x link), ± {:.0f} %\n",
                        to_string(host.inside.overhead.value), host.inside.fraction.value, 100 * host.inside.error);
    } else {
        report.footer += "messages between ranks: not measured (start it with mpirun -n 2)\n";
    }
    report.footer += fmt::format("kept in {}", path);
    return report;
}

// What was kept, and what is not yet there tuned now: prices are then those of the kernels that run will take.
kernels::Choices tuned_choices(const Options& options, const std::vector<calibrate::Needed>& problems,
                               const bench::Team& team) {
    if (options.tune == Tune::off || !options.backend.empty() || !options.algorithm.empty()) return {};
    bench::TuneOptions tuning;
    tuning.budget = options.budget * 0.5;
    tuning.scratch_limit = options.scratch_limit;
    tuning.team = team;
    return tune_missing(problems, tuning, options.tune, options.common);
}

using MeasureMessages = std::function<calibrate::Messages()>;

int measure(const Options& options, const bench::Team& team, const MeasureMessages& messages) {
    const Machine known = known_host(options);
    const std::vector<calibrate::Needed> problems = problems_of(options, known);
    if (team.rank == 0) {
        talk(options.common, fmt::format("measuring {} problems on {} ranks", problems.size(), team.ranks));
    }
    calibrate::Samples samples;
    samples.host = host_name();
    samples.date = today();
    samples.ranks = team.ranks;
    samples.figures = bench::measure_host({.budget = options.budget * 0.1}, team);
    bench::Options measuring;
    measuring.rounds.budget = options.budget * 0.7;
    measuring.backend = options.backend;
    measuring.algorithm = options.algorithm;
    measuring.team = team;
    measuring.scratch_limit = options.scratch_limit;
    measuring.tuned = tuned_choices(options, problems, team);
    const bench::Measurement measurement = bench::measure(problems, measuring);
    samples.compute = measurement.samples;
    if (team.ranks > 1) samples.messages = messages();
    if (team.rank != 0) return good;
    if (!options.samples_out.empty()) replace_file(options.samples_out, measurement.json);
    const Machine host = calibrate::apply(known, samples);
    print(report_of(options, samples, host, save(options, host)), options.common);
    return good;
}

int start(const Options& options) {
    if (options.device != "cpu") {
        check_writable(options.machine_out, options.common);
        return calibrate_device(
            {options.device, options.models, options.batches, options.fuse, options.machine_out, options.scratch_limit},
            options.common);
    }
    check(options);
#if REHEARSE_HAS_MPI
    int argc = 0;
    char** argv = nullptr;
    const run::Session session{argc, argv};
    return session.run("rehearse", [&] {
        if (session.threads() != 1) {
            throw InputError(
                fmt::format("OMP_NUM_THREADS gives a rank {} threads, but the device of this-host is one "
                            "core: unset it to calibrate",
                            session.threads()));
        }
        kernels::Communicator world = kernels::Communicator::world();
        const auto messages = [&] { return bench::measure_messages(world, {.budget = options.budget * 0.2}); };
        return measure(options, bench::team_of(world), messages);
    });
#else
    return measure(options, {}, {});
#endif
}

}  // namespace

Run add_calibrate(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    app.add_flag("--quick", options->quick, "compute steps, memory and messages of this host, in under a minute");
    app.add_option("--device", options->device,
                   "cuda: this host's GPU, written to --machine-out as a machine of its own")
        ->capture_default_str()
        ->option_text("cpu|cuda");
    app.add_option("--model", options->models, "networks whose steps are measured")
        ->delimiter(',')
        ->option_text("NAME[,NAME...]");
    app.add_option("--batch", options->batches, "samples a rank")->delimiter(',')->option_text("N[,N...]");
    add_fuse(app, options->fuse);
    app.add_option("--backend", options->backend, "use only this one (onednn, cpu, reference)")->option_text("NAME");
    app.add_option("--algorithm", options->algorithm, "where it applies: direct, im2col, winograd4, ...")
        ->option_text("NAME");
    add_tune(app, options->tune, {{"on", Tune::on}, {"off", Tune::off}, {"again", Tune::again}},
             "find the fastest implementation of each step first, where that is not known yet, and keep it for run");
    add_scratch_limit(app, options->scratch_limit);
    app.add_option("--machine-out", options->machine_out, "write the machine here, not to the place of this-host")
        ->option_text("FILE.toml");
    app.add_option("--out", options->samples_out, "also Google Benchmark's JSON of the samples")
        ->option_text("FILE.json");
    add_budget(app, options->budget);
    add_common(app, options->common);
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
