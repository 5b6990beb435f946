// SPDX-License-Identifier: Apache-2.0
// What holds of any plan, on random jobs and machines: it is refused with a reason or makes a schedule that passes its
// check; its memory is what a count over its steps gives; its simulation passes its certificate in both modes, which
// agree. REHEARSE_PLANS=N tries N jobs, REHEARSE_SEED=S others, REHEARSE_FIRST=I those from the I-th on; a failing job
// is shown as the least that fails, with its number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "fixture.hpp"
#include "schedule/memory.hpp"
#include "sim/simulate.hpp"
#include "tests/schedule/random_plans.hpp"

namespace rehearse::sim {
namespace {

using rehearse::test::RandomJob;
using rehearse::test::RandomJobs;

/// Of 16 devices: nodes of four, of one on a tapered tree, of two sockets.
const std::vector<Machine>& machines() {
    static const std::vector<Machine> all = [] {
        std::vector<Machine> made{test::four_device_nodes(6), test::one_device_nodes(24, FatTree{{4, 6}, {3}}),
                                  test::summit_like(4)};
        made[1].across = test::messaging(Seconds{3e-6}, 0.8, Bandwidth{40e9}, 0.1);
        for (Machine& machine : made) {
            for (const DataType type : {DataType::f16, DataType::bf16}) {
                machine.classes[0].peak[type] = {FlopRate{30e12}, "test"};
            }
            machine.storage.push_back({.name = "disk", .read = {Bandwidth{1e9}, "test"}, .per_node = true});
        }
        return made;
    }();
    return all;
}

Schedule schedule_of(const RandomJob& job, const Machine& machine) {
    return schedule::make_schedule(rehearse::test::random_networks()[static_cast<std::size_t>(job.network)], machine,
                                   schedule::parse_plan(job.plan()),
                                   {.devices = job.devices(),
                                    .batch_per_device = job.batch,
                                    .global_batch = {},
                                    .precision = job.precision,
                                    .optimizer = job.optimizer});
}

struct Outcome {
    bool refused = false;
    std::optional<std::string> failure{};
};

/// How far folded may be from exact. Ranks of a class go at the pace of the one with the longest ways, so that folded
/// is slower where these differ: on the last two machines some neighbours are behind another switch or socket.
bool agree(double folded, double exact, std::size_t machine_index) {
    return folded > 0.98 * exact && folded < (machine_index == 0 ? 1.02 : 1.15) * exact;
}

/// A tensor's steps, and which of them make it (perhaps again).
struct Uses {
    double bytes = 0;
    std::vector<std::pair<int, bool>> steps{};

    /// Somebody still needs what was made: there is a use from `step` on before it is made once more.
    bool alive(int step) const {
        bool made = false;
        for (const auto& [at, makes] : steps) {
            if (at <= step) made = made || makes;
            if (at > step && makes) return false;
            if (made && at >= step) return true;
        }
        return false;
    }
};

/// The most that activations and their gradients take at one step, by asking at each step for each tensor whether it is
/// needed. Of chains of layers in f32 on ranks that have whole samples and layers.
double counted_activations(const Schedule& schedule) {
    const RankClass& only = schedule.classes.at(0);
    const std::vector<Layer>& layers = only.part.network.layers;
    const auto samples = static_cast<double>(micro_batch_size(schedule, only));
    std::map<std::pair<int, std::size_t>, Uses> outputs, gradients, masks;  // by micro-batch and layer
    for (int m = 0; m < schedule.micro_batches; ++m) {
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const double bytes = 4 * samples * static_cast<double>(elements(layers[i].output));
            outputs[{m, i}].bytes = gradients[{m, i}].bytes = bytes;
            masks[{m, i}].bytes = kept_bytes(layers[i].op, 4, samples);
        }
        outputs[{m, 0}].steps.push_back({-1, true});
    }
    for (int step = 0; step < static_cast<int>(only.steps.size()); ++step) {
        const auto* compute = std::get_if<Compute>(&only.steps[static_cast<std::size_t>(step)].action);
        if (compute == nullptr) continue;
        const auto i = static_cast<std::size_t>(compute->layer);
        const Pass pass = compute->problem.pass;
        const int m = compute->micro_batch;
        const bool forward = pass == Pass::forward;
        const Reads read = reads(layers[i].op, pass);
        if (forward || read.src) outputs[{m, i - 1}].steps.push_back({step, false});
        if (forward || read.dst) outputs[{m, i}].steps.push_back({step, forward});
        masks[{m, i}].steps.push_back({step, forward});
        if (forward) continue;
        if (!is_loss(layers[i].op)) gradients[{m, i}].steps.push_back({step, false});
        if (pass == Pass::backward_data && i > 1) gradients[{m, i - 1}].steps.push_back({step, true});
    }
    double most = 0;
    for (int step = -1; step < static_cast<int>(only.steps.size()); ++step) {
        double held = 0;
        for (const auto* all : {&outputs, &gradients, &masks}) {
            for (const auto& [which, uses] : *all) held += uses.alive(step) ? uses.bytes : 0;
        }
        most = std::max(most, held);
    }
    return most;
}

std::optional<std::string> wrong_memory(const RandomJob& job, const Schedule& schedule) {
    const bool chain = job.network < 2 && job.precision == Precision::fp32;
    const bool whole =
        schedule.mesh.axes.size() == 1 && schedule.mesh.axes[0].name == "data" && schedule.classes.size() == 1;
    for (const char* word : {"dense=shared", "learners"}) {  // layers in pieces; activations of several models
        if (job.plan().find(word) != std::string::npos) return std::nullopt;
    }
    if (!chain || !whole) return std::nullopt;
    const schedule::MemoryUse use = schedule::memory_use(schedule);
    const double said = (use.activations + use.activation_gradients).value, counted = counted_activations(schedule);
    if (said == counted) return std::nullopt;
    return fmt::format("activations and gradients of {} B, counted {} B", said, counted);
}

std::string trying;  // told by what ends the program, too: an index out of its range

void tell(int signal) {
    std::fprintf(stderr, "%s: %s\n", strsignal(signal), trying.c_str());
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

Outcome outcome_of(const RandomJob& job, std::size_t machine_index) {
    trying = fmt::format("{} on {} devices of machine {}", job.text(), job.devices(), machine_index);
    const Machine& machine = machines()[machine_index];
    try {
        const Schedule schedule = schedule_of(job, machine);
        check(schedule);
        if (const auto wrong = wrong_memory(job, schedule)) return {.failure = wrong};
        double exact = 0, folded = 0;
        try {
            exact = test::step_time(simulate(schedule, machine, {.mode = Mode::exact}).timeline).value;
        } catch (const InputError&) {  // servers are followed in folded mode alone
        }
        folded = test::step_time(simulate(schedule, machine, {.mode = Mode::folded}).timeline).value;
        if (!(folded > 0)) return {.failure = fmt::format("a step of {} s", folded)};
        if (exact == 0) return {};
        if (!agree(folded, exact, machine_index)) {
            return {.failure =
                        fmt::format("folded {} s, exact {} s: {:+.2f} %", folded, exact, 100 * (folded / exact - 1))};
        }
        return {};
    } catch (const InputError& refusal) {
        if (std::string_view{refusal.what()}.size() > 10) return {.refused = true};
        return {.failure = "refused without a reason"};
    } catch (const InfeasibleError&) {
        return {.refused = true};
    } catch (const std::exception& bug) {
        return {.failure = bug.what()};
    }
}

TEST(RandomPlans, KeepTheirPromises) {
    const std::int64_t plans = rehearse::test::number("REHEARSE_PLANS", 300);
    RandomJobs jobs(static_cast<std::uint64_t>(rehearse::test::number("REHEARSE_SEED", 1)));
    for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, tell);
    std::int64_t made = 0;
    std::set<std::string> failures;
    const std::int64_t first = rehearse::test::number("REHEARSE_FIRST", 0);
    for (std::int64_t i = 0; i < first; ++i) jobs.draw();
    for (std::int64_t i = first; i < first + plans; ++i) {
        const RandomJob job = jobs.draw();
        const std::size_t machine = static_cast<std::size_t>(i) % machines().size();
        const Outcome outcome = outcome_of(job, machine);
        made += outcome.refused ? 0 : 1;
        if (!outcome.failure) continue;
        const RandomJob least =
            rehearse::test::least(job, [&](const RandomJob& less) { return outcome_of(less, machine).failure; });
        const std::string told = fmt::format("{} on {} devices of machine {}", least.text(), least.devices(), machine);
        if (failures.insert(told).second)
            ADD_FAILURE() << "job " << i << ": " << told << "\n    " << *outcome_of(least, machine).failure;
        if (failures.size() > 20) break;
    }
    fmt::print("{} jobs, {} of them with a schedule\n", plans, made);
    EXPECT_GT(made, plans / 6);
}

}  // namespace
}  // namespace rehearse::sim
