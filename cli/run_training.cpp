// SPDX-License-Identifier: Apache-2.0
#include "cli/run_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/choice.hpp"
#include "cli/job.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/bilevel.hpp"
#include "core/text.hpp"
#include "kernels/comm/communicator.hpp"
#include "models/models.hpp"
#if REHEARSE_HAS_SIM
#include "sim/collective/choose.hpp"
#endif

namespace rehearse::cli {

namespace {

// A host of so many ranks: with the links of the machine's node, where that has as many devices.
NodeKind host_of(const NodeKind& node, std::int64_t ranks, std::int64_t count) {
    NodeKind host{"host", count, {}, {}};
    const bool joined = devices_per_node(node) >= ranks;
    std::vector<int> places(node.vertices.size(), -1);
    std::int64_t rank = 0;
    const auto add_rank = [&] { host.vertices.push_back({fmt::format("rank{}", rank++), VertexKind::device, 0}); };
    for (std::size_t v = 0; v < node.vertices.size(); ++v) {
        const Vertex& vertex = node.vertices[v];
        if (vertex.kind == VertexKind::device ? rank == ranks : vertex.kind == VertexKind::bridge && !joined) continue;
        places[v] = static_cast<int>(host.vertices.size());
        if (vertex.kind == VertexKind::device) {
            add_rank();
        } else {
            host.vertices.push_back(vertex);
        }
    }
    while (rank < ranks) add_rank();
    for (NodeLink link : node.links) {
        link.a = places[static_cast<std::size_t>(link.a)];
        link.b = places[static_cast<std::size_t>(link.b)];
        if (joined && link.a >= 0 && link.b >= 0) host.links.push_back(link);
    }
    return host;
}

// The hosts as mpirun filled them. Stages are cut, and ways to sum between hosts chosen, by the prices that `predict`
// would take, where this host has been measured, so that both do so alike.
Machine job_machine(const run::Session& session, const RunOptions& options) {
    const std::string& priced = options.machine;
    const std::int64_t local = session.local_size() * options.run.learners;
    const std::int64_t hosts = (session.size() * options.run.learners + local - 1) / local;
    Machine machine;
    if (!priced.empty() || std::filesystem::exists(models::this_host_path())) {
        machine = models::load_machine(priced.empty() ? "this-host" : priced);
    } else {
        machine.classes.resize(1);
        machine.classes[0].name = "rank";
    }
    machine.name = "mpirun";
    machine.nodes = {host_of(machine.nodes.empty() ? NodeKind{} : machine.nodes.front(), local, hosts)};
    return machine;
}

// As `predict` on the same machine chooses.
void settle([[maybe_unused]] Schedule& schedule, const schedule::Plan& plan,
            [[maybe_unused]] const std::string& machine) {
    if (!plan.all_reduce || plan.all_reduce->name != "auto") return;
#if REHEARSE_HAS_SIM
    sim::choose_algorithms(schedule, models::load_machine(machine.empty() ? "this-host" : machine));
#else
    throw BackendError("allreduce=auto: this build has no SimGrid to price algorithms with: name one");
#endif
}

// What training begins with: the network's own file, if it has weights, unless another one is named.
Network load_with_weights(const RunOptions& options) {
    models::ImportOptions import = options.job.import;
    import.values = true;
    Network network = load_network(options.job.model, options.job.fuse, import);
    if (options.weights.empty()) return network;
    if (!options.weights.ends_with(".onnx")) {
        run::give_weights(network, options.weights);
        return network;
    }
    const Network other = load_network(options.weights, options.job.fuse, import);
    for (Layer& layer : network.layers) {
        if (parameters(layer.op) == 0) continue;
        const auto found = find_layer(other, layer.name);
        const Layer* from = found ? &other.layers[static_cast<std::size_t>(*found)] : nullptr;
        if (from == nullptr || from->given == nullptr || from->given->weights.empty() ||
            weights(from->op) != weights(layer.op)) {
            throw InputError(fmt::format("{}: {} '{}', whose weights --model {} needs", options.weights,
                                         from == nullptr ? "has no layer" : "has not the same weights for layer",
                                         layer.name, options.job.model));
        }
        Given given = layer.given == nullptr ? Given{} : *layer.given;
        given.weights = from->given->weights;
        given.state = from->given->state;
        layer.given = std::make_shared<const Given>(std::move(given));
    }
    return network;
}

// Of 1, 2, ... learners, each with a batch as large as those of the plan have.
void add_learner_schedules(const run::Session& session, const RunOptions& options, const Network& network,
                           run::Options& asked) {
    if (options.most_learners == 0) return;
    schedule::Plan plan = schedule::parse_plan(options.job.plan);
    const int learners = plan.methods.get<Averaging>().learners;
    asked.learner_gain = share_or_infinity("--gain", options.gain);
    JobOptions job = options.job;
    for (int m = 1; m <= options.most_learners; ++m) {
        plan.methods.edit<Averaging>().learners = m;
        plan.micro_batches = plan.methods.get<Averaging>().period * m;
        job.batch = options.job.batch / learners * m;
        asked.by_learners.push_back(std::make_shared<const Schedule>(
            make_schedule(network, job_machine(session, options), plan, job_for(job, session.size()))));
    }
}

// What each layer begins with is in this rank's memory now, and is not kept twice; what its kernels read stays.
void let_go(Network& network) {
    for (Layer& layer : network.layers)
        if (layer.given != nullptr && layer.given->fixed.empty() && layer.given->places.empty()) layer.given.reset();
}

// Steps are told from `first` on.
Trained train_one(const run::Session& session, const RunOptions& options, Network network, int first) {
    const schedule::Plan plan = schedule::parse_plan(options.job.plan);
    Trained made{make_schedule(network, job_machine(session, options), plan,
                               job_for(options.job, session.size() * options.run.learners)),
                 {}};
    settle(made.schedule, plan, options.machine);
    run::Options asked = options.run;
    asked.learning_rate = options.learning_rate.value_or(run::default_learning_rate(options.job.optimizer));
    asked.epsilon = options.epsilon.value_or(run::default_epsilon(options.job.optimizer));
    if (!options.patience.empty()) asked.patience = quantity_of<Seconds>("--patience", options.patience);
    asked.shuffle = options.order == "shuffled";
    if (asked.check_gradients) {
        const schedule::Job single{1, micro_batch_size(made.schedule), {}, Precision::fp32, options.job.optimizer};
        asked.single_rank = std::make_shared<const Schedule>(
            make_schedule(network, job_machine(session, options), schedule::parse_plan("data"), single));
    }
    add_learner_schedules(session, options, network, asked);
    asked.results = made.schedule.methods.get<Bilevel>().on;  // else nobody looks at them
    asked.begun = [&] {
        let_go(network);
        let_go(made.schedule.network);
        for (RankClass& each : made.schedule.classes) let_go(each.part.network);
#ifdef __GLIBC__
        ::malloc_trim(0);
#endif
    };
    const bool speaks = session.rank() == 0;
    const bool live = speaks && speaks_live(options);
    asked.keep_steps = !speaks_live(options);
    if (options.tune != Tune::off && asked.device == "cpu" && asked.backend.empty() && asked.algorithm.empty()) {
        asked.tuned = tuned_for_all(asked.scratch_limit, options.common);
        if (speaks) say_how_much_is_tuned(made.schedule, asked.tuned, asked.scratch_limit, options.common);
    }
    made.result = run::train(session, made.schedule, asked, [&](int step, const run::StepReport& report) {
        ++made.steps;
        made.seconds += report.seconds;
        if (!made.diverged && !std::isfinite(report.loss)) made.diverged = {first + step, report.loss};
        if (live) print_step(first + step, report, made.steps == 1 && first == 0);
    });
    return made;
}

double excess(const run::Result& result) { return result.gradient_error / result.gradient_tolerance; }

}  // namespace

Trained train_network(const run::Session& session, const RunOptions& options) {
    return train_one(session, options, load_with_weights(options), 0);
}

Trained train_growing(const run::Session& session, const RunOptions& options, std::vector<GrownPhase>& phases) {
    const std::vector<GrowthPhase> asked = growth_phases(options.job.model, options.growth, options.run.steps);
    std::vector<Network> networks{load_with_weights(options)};  // all before the first is trained
    for (std::size_t i = 1; i < asked.size(); ++i)
        networks.push_back(load_network(asked[i].model, options.job.fuse, options.job.import));
    Trained made;
    std::vector<run::StepReport> steps;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        RunOptions now = options;
        now.run.steps = steps_of(asked, i, options.run.steps);
        now.run.first_sample = made.result.samples;
        GrownPhase phase{asked[i], now.run.steps, {}, {}, parameters(networks[i])};
        kernels::Communicator::world().barrier();
        if (i > 0) phase.grown = run::grow_weights(networks[i], options.run.save, options.copy_layers);
        kernels::Communicator::world().barrier();  // all have read before it is written again
        const Trained before = std::move(made);
        made = train_one(session, now, std::move(networks[i]), asked[i].from);
        made.result.samples += before.result.samples;
        if (i > 0 && options.run.check_gradients && excess(before.result) > excess(made.result)) {
            made.result.gradient_error = before.result.gradient_error;
            made.result.gradient_tolerance = before.result.gradient_tolerance;
        }
        phase.seconds = made.seconds;
        made.steps += before.steps;
        made.seconds += before.seconds;
        if (before.diverged) made.diverged = before.diverged;
        steps.insert(steps.end(), made.result.steps.begin(), made.result.steps.end());
        phases.push_back(std::move(phase));
    }
    made.result.steps = std::move(steps);
    return made;
}

}  // namespace rehearse::cli
