// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <memory>

#include "bench/compute.hpp"
#include "bench/host.hpp"
#include "calibrate/collective_times.hpp"
#include "calibrate/probes.hpp"
#include "calibrate/problems.hpp"
#include "calibrate/quick.hpp"
#include "calibrate/shared_cores.hpp"
#include "cli/calibrate_device.hpp"
#include "cli/calibrate_kernels.hpp"
#include "cli/calibrate_report.hpp"
#include "cli/calibrate_trace.hpp"
#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"
#include "models/this_host.hpp"
#include "picture/write.hpp"
#include "schedule/plan.hpp"
#if REHEARSE_HAS_MPI
#include "bench/messages.hpp"
#include "bench/sockets.hpp"
#include "cli/in_situ.hpp"
#include "kernels/comm/idle.hpp"
#include "run/train.hpp"
#endif

namespace rehearse::cli {

namespace {

/// What carries messages between ranks: MPI, or the sockets of a framework that does without.
enum class Transport { mpi, sockets };

/// Large: one member an option of the command line.
struct Options {
    Common common;
    bool quick = false, report = false;
    std::vector<std::string> models{"lenet5", "resnet32"}, plans{"data"};
    std::vector<std::int64_t> batches{32};
    std::string backend, algorithm, machine_out, samples_out, plot, fuse{default_fuse};
    std::vector<std::string> samples;  // files; then nothing is measured
    std::vector<std::string> kernels;  // files of a few measured kernels; nor then
    std::string machine;               // that they are of
    std::vector<std::string> traces;   // profiles of training; then nothing is measured
    Precision precision = Precision::fp32;
    Optimizer optimizer = Optimizer::sgd;
    calibrate::Between between = calibrate::Between::nodes;
    std::int64_t ranks = 0;
    Seconds budget{0};  // 0: by --quick
    std::string device = "cpu";
    Transport transport = Transport::mpi;
    Tune tune = Tune::on;
    Bytes scratch_limit = kernels::default_scratch_limit;
};

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
    return name.data();
}

void check(const Options& options) {
    for (const std::int64_t batch : options.batches) {
        if (batch < 1) throw InputError(fmt::format("--batch {}: at least 1", batch));
    }
    check_writable(options.machine_out, options.common);
    check_writable(options.samples_out, options.common);
    check_writable(options.common.output, options.common);
    check_writable(options.plot, options.common);
    if (!options.plot.empty()) picture::check_suffix(options.plot);
}

// What was measured before stays, as far as it was on this host and is not measured again.
Machine known_host(const Options& options, std::int64_t nodes, std::int64_t ranks_a_node) {
    if (nodes > 1) {
        if (options.machine_out.empty())
            throw InputError("calibrate: several hosts are a machine of their own: give --machine-out FILE.toml");
        return models::detect_hosts(nodes, ranks_a_node);
    }
    if (options.machine_out.empty() && std::filesystem::exists(models::this_host_path())) {
        try {
            return models::load_machine("this-host");
        } catch (const InputError& error) {
            talk(options.common, fmt::format("starting anew: {}", error.what()));
        }
    }
    return models::detect_this_host();
}

// Of every network, plan and batch.
std::vector<Schedule> schedules_of(const Options& options, const std::vector<std::string>& plans, const Machine& host,
                                   std::int64_t ranks) {
    std::vector<Schedule> schedules;
    for (const std::string& name : options.models) {
        const Network network = load_network(name, options.fuse);
        for (const std::string& plan : plans) {
            for (const std::int64_t batch : options.batches) {
                schedules.push_back(schedule::make_schedule(network, host, schedule::parse_plan(plan),
                                                            {.devices = ranks, .batch_per_device = batch}));
            }
        }
    }
    return schedules;
}

// What is only part of a calibration takes no other's place.
std::string save(const Options& options, const Machine& host, bool partial) {
    const std::string whole = options.machine_out.empty() ? models::this_host_path() : options.machine_out;
    const std::string path = partial ? std::filesystem::path{whole}.replace_extension(".partial.toml").string() : whole;
    if (options.machine_out.empty()) {
        std::error_code error;
        std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), error);
        if (error) throw InputError(fmt::format("{}: its folder cannot be made: {}", path, error.message()));
    }
    replace_file(path, models::to_toml(host));
    return path;
}

// What was kept, and what is not yet there tuned now: prices are then those of the kernels that run will take.
Seconds budget_of(const Options& options) {
    if (options.budget > Seconds{0}) return options.budget;
    return Seconds{options.quick ? 30.0 : 60.0};
}

kernels::Choices tuned_choices(const Options& options, const std::vector<calibrate::Needed>& problems,
                               const bench::Team& team, const LongWork& work) {
    if (options.tune == Tune::off || !options.backend.empty() || !options.algorithm.empty()) return {};
    bench::TuneOptions tuning;
    tuning.budget = budget_of(options) * 0.5;
    tuning.scratch_limit = options.scratch_limit;
    tuning.team = team;
    tuning.checking = work.part("checking operators");
    tuning.timing = work.part("tuning");
    return tune_missing(problems, tuning, options.tune, options.common);
}

// From files, without measuring.
int read_and_apply(const Options& options) {
    if (options.machine.empty() || options.machine_out.empty())
        throw InputError(
            "--samples: give --machine NAME|FILE.toml, whose figures the samples replace, and --machine-out");
    Machine machine = models::load_machine(options.machine);
    Report report{document("calibration", {{"machine", options.machine}, {"files", options.samples}}), {}, ""};
    Json rows = Json::array(), collectives = Json::array();
    for (const std::string& path : options.samples) {
        const calibrate::FileSamples samples = calibrate::read_samples(read_file(path), path, options.ranks);
        for (const std::string& why : samples.skipped) talk(options.common, fmt::format("{}: skipped {}", path, why));
        machine = calibrate::apply(std::move(machine), samples, options.between);
        for (const calibrate::CollectiveRow& row : samples.collectives)
            collectives.push_back(collective_row(path, row));
        rows.push_back({{"file", path},
                        {"where", samples.where},
                        {"problems", samples.compute.size()},
                        {"messages", samples.messages.size()},
                        {"skipped", samples.skipped.size()}});
    }
    report.document["rows"] = rows;
    report.document["collectives"] = collectives;
    report.document["file"] = options.machine_out;
    report.tables = {{"rows",
                      "samples",
                      {{"file", "file"},
                       {"where", "measured"},
                       {"problems", "problems", Show::count},
                       {"messages", "messages", Show::count},
                       {"skipped", "skipped", Show::count}}}};
    if (!collectives.empty()) report.tables.push_back(collective_table());
    const Messaging& fitted = options.between == calibrate::Between::nodes ? machine.across : machine.inside;
    report.footer =
        fmt::format("{}{}kept in {}", collectives.empty() ? "" : std::string{calibrate::bandwidth_words} + "\n",
                    messaging_line("of these", fitted), options.machine_out);
    replace_file(options.machine_out, models::to_toml(machine));
    print(report, options.common);
    return good;
}

/// Who measures: ranks of this host, or of several.
struct JobRanks {
    bench::Team team;
    std::int64_t nodes = 1, ranks_a_node = 1;
    std::vector<SharedCores> shared{};  // by the ranks
    std::function<void(calibrate::Samples&)> messages = [](calibrate::Samples&) {};
#if REHEARSE_HAS_MPI
    const run::Session* session = nullptr;
#endif
};

struct Measured {
    calibrate::Samples samples;
    Machine host;
    std::vector<calibrate::CheckedStep> whole;  // training steps
    std::string json;                           // of the problems by themselves
};

// Compute steps by themselves, messages, compute steps in whole training steps, then these themselves.
// A work that should end does so on all ranks, with what was measured by then.
Measured measured(const Options& options, const JobRanks& job, const Machine& known, const LongWork& work) {
    const auto ends = [&] { return job.team.mean(work.interrupted() ? 1 : 0) > 0; };
    const std::vector<Schedule> schedules = schedules_of(options, options.plans, known, job.team.ranks);
    const std::vector<calibrate::Needed> problems = calibrate::problems(schedules);
    if (job.team.rank == 0)
        talk(options.common, fmt::format("measuring {} problems on {} ranks", problems.size(), job.team.ranks));
    Measured result;
    calibrate::Samples& samples = result.samples;
    samples.host = host_name();
    samples.date = today();
    samples.ranks = job.team.ranks;
    samples.nodes = job.nodes;
    samples.figures = bench::measure_host({.budget = budget_of(options) * 0.1}, job.team);
    // Loops over memory are long enough to be of a rank's share of a core, which peak and launch are too short for.
    Bandwidth& memory = samples.figures.memory_bandwidth.median;
    memory = memory * (1 / job.team.mean(calibrate::share_of_core(job.shared, job.team.rank)));
    bench::Options measuring;
    measuring.rounds.budget = budget_of(options) * 0.4;
    measuring.backend = options.backend;
    measuring.algorithm = options.algorithm;
    measuring.team = job.team;
    measuring.scratch_limit = options.scratch_limit;
    measuring.tuned = tuned_choices(options, problems, job.team, work);
    measuring.rounds.progress = work.part("kernels");
    std::vector<calibrate::Needed> timed = problems;
    if (options.backend.empty() && options.algorithm.empty()) {
        const std::vector<calibrate::Needed> more = calibrate::probes(problems);
        timed.insert(timed.end(), more.begin(), more.end());
    }
    bench::Measurement measurement = bench::measure(timed, measuring);
    result.json = std::move(measurement.json);
    samples.compute = std::move(measurement.samples);
    std::erase_if(samples.compute, [](const calibrate::Sample& sample) { return sample.count == 0; });
    if (samples.compute.empty()) return result;
    if (!ends()) job.messages(samples);
    result.host = calibrate::apply(known, samples);
    if (ends()) return result;
#if REHEARSE_HAS_MPI
    const Seconds budget = budget_of(options) * 0.3;
    const InSituJob in_situ{*job.session,
                            job.team,
                            {options.backend, options.algorithm, options.scratch_limit, measuring.tuned},
                            budget,
                            ends};
    price_in_situ(in_situ, schedules, result.host, samples.compute);
    result.host = calibrate::apply(known, samples);
    if (!options.quick && !ends()) result.whole = check_in_situ(in_situ, schedules, result.host);
#endif
    return result;
}

int measure(const Options& options, const JobRanks& job) {
    Common of_first = options.common;
    of_first.quiet = of_first.quiet || job.team.rank != 0;
    const LongWork work{of_first};
    Machine known = known_host(options, job.nodes, job.ranks_a_node);
    known.shared_cores = job.shared;
    auto [samples, host, whole, json] = measured(options, job, known, work);
    const bool partial = job.team.mean(work.interrupted() ? 1 : 0) > 0;
    if (job.team.rank != 0) return work.exit_code(good);
    if (samples.compute.empty()) {
        talk(options.common, "partial: ended before any kernel was measured; nothing is kept");
        return work.exit_code(good);
    }
    if (!whole.empty()) host.in_situ = calibrate::in_situ(whole, samples.host, samples.date);
    const std::string of_messages = calibrate::doubt_of_messages(samples);
    if (host.in_situ.doubt.empty()) host.in_situ.doubt = of_messages;
    if (!options.samples_out.empty()) replace_file(options.samples_out, json);
    if (!options.plot.empty()) replace_file(options.plot, residual_picture(samples, host, options.plot));
    const Calibration made{samples, host, whole, save(options, host, partial), options.report};
    Report report =
        report_of(made, {{"models", options.models}, {"plans", options.plans}, {"batches", options.batches}});
    work.mark(report);
    print(report, options.common);
    const bool doubted = !of_messages.empty() || (!whole.empty() && !host.in_situ.doubt.empty());
    return work.exit_code(doubted ? check_failed : good);
}

#if REHEARSE_HAS_MPI
calibrate::Messages messages_of(const Options& options, kernels::Communicator& ranks, const bench::Rounds& rounds) {
    if (options.transport == Transport::mpi) return bench::measure_messages(ranks, rounds);
    const auto exchange = [&](const std::string& mine) { return ranks.all_gather(mine); };
    return bench::measure_sockets(bench::team_of(ranks), exchange, rounds);
}

// Messages inside a host among all its ranks, on all hosts at once; between hosts among the first ranks of each.
void measure_messages(const Options& options, const kernels::Communicator& world, calibrate::Samples& samples) {
    const bench::Rounds rounds{.budget = budget_of(options) * 0.2};
    kernels::Communicator host = world.node();
    kernels::Communicator peers = world.split(host.rank(), world.rank());
    if (host.size() > 1) samples.messages = messages_of(options, host, rounds);
    world.barrier(kernels::attentive());
    if (peers.size() > 1 && host.rank() == 0) samples.across = messages_of(options, peers, rounds);
    world.barrier(kernels::attentive());
}

JobRanks ranks_of(const Options& options, const run::Session& session, const kernels::Communicator& world) {
    const double local = static_cast<double>(session.local_size());
    for (const double other : world.all_gather({&local, 1})) {
        if (other != local) throw InputError("calibrate: every host must have as many ranks as the others");
    }
    JobRanks job;
    job.team = bench::team_of(world);
    job.ranks_a_node = session.local_size();
    job.nodes = session.size() / session.local_size();
    job.messages = [&](calibrate::Samples& samples) { measure_messages(options, world, samples); };
    const std::string source = fmt::format("where ranks may run, {}, {}", host_name(), today());
    job.shared = calibrate::shared_cores(world.all_gather(models::core_set()), source);
    job.session = &session;
    return job;
}
#endif

int start(const Options& options) {
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
    if (!options.samples.empty()) return read_and_apply(options);
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
        const kernels::Communicator world = kernels::Communicator::world();
        return measure(options, ranks_of(options, session, world));
    });
#else
    return measure(options, {});
#endif
}

}  // namespace

Run add_calibrate(CommandLine& app) {
    const auto options = std::make_shared<Options>();
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
    add_choice<calibrate::Between>(app, "--between", options->between,
                                   {{"nodes", calibrate::Between::nodes}, {"devices", calibrate::Between::devices}},
                                   "with --samples or --trace: whose messages they are");
    app.add_option("--ranks", options->ranks, "with --samples: of OSU's all-reduce")->option_text("N");
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
