// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_host.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>

#include "bench/compute.hpp"
#include "bench/host.hpp"
#include "calibrate/probes.hpp"
#include "calibrate/problems.hpp"
#include "calibrate/quick.hpp"
#include "calibrate/shared_cores.hpp"
#include "cli/calibrate_report.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
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

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
    return name.data();
}

// What was measured before stays, as far as it was on this host and is not measured again.
Machine known_host(const CalibrateOptions& options, std::int64_t nodes, std::int64_t ranks_a_node) {
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
    Machine host = models::detect_this_host();
    // More ranks than cores: a device for each, of which calibrate finds out who shares a core.
    const bool crowded = ranks_a_node > device_count(host) && !options.machine_out.empty();
    return crowded ? models::detect_hosts(1, ranks_a_node) : host;
}

// Of every network, plan and batch.
std::vector<Schedule> schedules_of(const CalibrateOptions& options, const std::vector<std::string>& plans,
                                   const Machine& host, std::int64_t ranks) {
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
std::string save(const CalibrateOptions& options, const Machine& host, bool partial) {
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
Seconds budget_of(const CalibrateOptions& options) {
    if (options.budget > Seconds{0}) return options.budget;
    return Seconds{options.quick ? 30.0 : 60.0};
}

kernels::Choices tuned_choices(const CalibrateOptions& options, const std::vector<calibrate::Needed>& problems,
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
    std::string doubt;                          // of kernels inside training steps
};

// Compute steps by themselves, messages, compute steps in whole training steps, then these themselves.
// A work that should end does so on all ranks, with what was measured by then.
Measured measured(const CalibrateOptions& options, const JobRanks& job, const Machine& known, const LongWork& work) {
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
    result.doubt = calibrate::doubt_of_steps(samples, price_in_situ(in_situ, schedules, result.host, samples.compute));
    result.host = calibrate::apply(known, samples);
    if (!options.quick && !ends()) result.whole = check_in_situ(in_situ, schedules, result.host);
#endif
    return result;
}

int measure(const CalibrateOptions& options, const JobRanks& job) {
    Common of_first = options.common;
    of_first.quiet = of_first.quiet || job.team.rank != 0;
    const LongWork work{of_first};
    Machine known = known_host(options, job.nodes, job.ranks_a_node);
    known.shared_cores = job.shared;
    auto [samples, host, whole, json, of_steps] = measured(options, job, known, work);
    const bool partial = job.team.mean(work.interrupted() ? 1 : 0) > 0;
    if (job.team.rank != 0) return work.exit_code(good);
    if (samples.compute.empty()) {
        talk(options.common, "partial: ended before any kernel was measured; nothing is kept");
        return work.exit_code(good);
    }
    if (!whole.empty()) host.in_situ = calibrate::in_situ(whole, samples.host, samples.date);
    const std::string of_messages = calibrate::doubt_of_messages(samples);
    if (host.in_situ.doubt.empty()) host.in_situ.doubt = of_steps.empty() ? of_messages : of_steps;
    if (!options.samples_out.empty()) replace_file(options.samples_out, json);
    if (!options.plot.empty()) replace_file(options.plot, residual_picture(samples, host, options.plot));
    const Calibration made{samples, host, whole, save(options, host, partial), options.report};
    Report report =
        report_of(made, {{"models", options.models}, {"plans", options.plans}, {"batches", options.batches}});
    work.mark(report);
    print(report, options.common);
    const bool doubted = !of_messages.empty() || !of_steps.empty() || (!whole.empty() && !host.in_situ.doubt.empty());
    return work.exit_code(doubted ? check_failed : good);
}

#if REHEARSE_HAS_MPI
calibrate::Messages messages_of(const CalibrateOptions& options, kernels::Communicator& ranks,
                                const bench::Rounds& rounds) {
    if (options.transport == Transport::mpi) return bench::measure_messages(ranks, rounds);
    const auto exchange = [&](const std::string& mine) { return ranks.all_gather(mine); };
    return bench::measure_sockets(bench::team_of(ranks), exchange, rounds);
}

// Messages inside a host among all its ranks, on all hosts at once; between hosts among the first ranks of each.
void measure_messages(const CalibrateOptions& options, const kernels::Communicator& world,
                      calibrate::Samples& samples) {
    const bench::Rounds rounds{.budget = budget_of(options) * 0.2};
    kernels::Communicator host = world.node();
    kernels::Communicator peers = world.split(host.rank(), world.rank());
    if (host.size() > 1) samples.messages = messages_of(options, host, rounds);
    world.barrier(kernels::attentive());
    if (peers.size() > 1 && host.rank() == 0) samples.across = messages_of(options, peers, rounds);
    world.barrier(kernels::attentive());
}

JobRanks ranks_of(const CalibrateOptions& options, const run::Session& session, const kernels::Communicator& world) {
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

}  // namespace

int calibrate_host(const CalibrateOptions& options) {
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

}  // namespace rehearse::cli
