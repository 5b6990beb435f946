// SPDX-License-Identifier: Apache-2.0
#include "run/job_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/weight_versions.hpp"

namespace rehearse::run {

namespace {

// Kernels of this program multiply f32, f16 and bf16.
void check_types(const Schedule& schedule) {
    if (schedule.precision != Precision::tf32 && schedule.precision != Precision::fp8) return;
    throw InputError(fmt::format("run: --precision {} is predicted, not run; choose {}", to_string(schedule.precision),
                                 schedule.precision == Precision::tf32 ? "fp32" : "bf16"));
}

// Servers, models of a rank's own, compressed gradients: what no rank runs beside them.
void check_own_ways(const Schedule& schedule) {
    const bool averages = schedule.averaging.period > 0, compresses = schedule.compression != Compression{};
    if (!averages && !compresses && schedule.servers.count == 0 && schedule.curvature.period == 0) return;
    if (schedule.precision != Precision::fp32) {
        throw InputError(
            fmt::format("run: plan '{}' trains in fp32 only, not in {}", schedule.plan, to_string(schedule.precision)));
    }
    for (const Axis& axis : schedule.mesh.axes) {
        const bool whole = axis.name == "data" || axis.name == "groups" || axis.size == 1;
        if (!whole && !averages) {
            throw InputError(fmt::format("run: plan '{}': {} beside data is predicted, not run, in this version",
                                         schedule.plan, axis.name));
        }
    }
}

// A rank's learners, or threads without locks, train at the same time: run/pool.hpp.
void check_pools(const Schedule& schedule, const Options& options) {
    const bool learners = schedule.averaging.learners > 1, unlocked = options.unlocked != 0;
    if (!learners && !unlocked) {
        if (!options.first_idle && options.learner_paces.empty()) return;
        throw InputError(
            fmt::format("--assign and --learner-paces: of several learners, as in --plan data:learners=2, "
                        "or of --unlocked threads; plan '{}' has none",
                        schedule.plan));
    }
    const auto refuse = [&](std::string_view option, std::string_view why) {
        throw InputError(fmt::format("run: {} of plan '{}': {}", option, schedule.plan, why));
    };
    for (const Axis& axis : schedule.mesh.axes) {
        if (axis.name != "data" && axis.size > 1)
            refuse(axis.name, "a rank's threads train whole networks, in this version");
    }
    if (unlocked) {
        const std::string_view option = "--unlocked";
        const Averaging& averaging = schedule.averaging;
        if (options.unlocked < 1) refuse(option, "at least 1 thread");
        if (averaging.period == 0 || averaging.elastic > 0 || learners || schedule.servers.count > 0) {
            refuse(option, "it goes with local=N alone: threads make its updates of one model");
        }
        if (options.unlocked > averaging.period) {
            refuse(option, fmt::format("{} threads share {} updates a step: give local=N with more", options.unlocked,
                                       averaging.period));
        }
        if (schedule.optimizer != Optimizer::sgd || options.momentum != 0 || options.weight_decay != 0) {
            refuse(option, "updates that nothing orders are sums, as of SGD with --momentum 0 and --weight-decay 0");
        }
    }
    const auto threads = static_cast<std::size_t>(unlocked ? options.unlocked : schedule.averaging.learners);
    const std::vector<double>& paces = options.learner_paces;
    if (paces.empty()) return;
    const bool right = std::ranges::all_of(paces, [](double pace) { return pace >= 1 && pace <= 1000; });
    if (paces.size() != threads || !right) {
        refuse("--learner-paces", fmt::format("{} numbers from 1 to 1000, one for each of a rank's", threads));
    }
}

// Rows of tables that are updated as soon as their gradients have come.
void check_tables(const Schedule& schedule, const Options& options) {
    for (const Layer& layer : schedule.classes.front().part.network.layers) {
        if (const auto* op = std::get_if<Communication>(&layer.op); op != nullptr && op->kept > 0) {
            throw InputError(
                fmt::format("run: plan '{}': {} tables are not shared evenly by {} ranks, which is predicted, not run, "
                            "in this version",
                            schedule.plan, op->kept, op->parts));
        }
        if (!updates_directly(layer.op)) continue;
        if (schedule.precision != Precision::fp32) {
            throw InputError(fmt::format("run: plan '{}' trains in fp32 only, not in {}", schedule.plan,
                                         to_string(schedule.precision)));
        }
        if (options.momentum == 0 && options.weight_decay == 0) continue;
        throw InputError(
            fmt::format("run: plan '{}': rows of tables are updated by plain SGD, so that --momentum {} and "
                        "--weight-decay {} must both be 0",
                        schedule.plan, options.momentum, options.weight_decay));
    }
}

}  // namespace

void check_on_device(const Schedule& schedule, std::string_view device) {
    if (device == "cpu") return;
    const auto refuse = [&](std::string_view why) {
        throw InputError(fmt::format("run: --device {} does not train plan '{}': {}", device, schedule.plan, why));
    };
    if (schedule.averaging.learners > 1) {
        refuse("the models of a rank's learners are kept on the host; give each a rank, or share one by --learners");
    }
    if (schedule.curvature.period > 0) refuse("its factors are inverted on the host");
    for (const RankClass& rank_class : schedule.classes) {
        if (weight_versions(rank_class) > 1) refuse("PipeDream's versions of the weights are kept on the host");
        for (const Bucket& bucket : rank_class.part.buckets) {
            if (bucket.tie >= 0) refuse("the gradient of a table that two stages share is turned on the host");
        }
        if (std::ranges::any_of(rank_class.part.network.layers,
                                [](const Layer& l) { return updates_directly(l.op); })) {
            refuse("rows of its tables are updated on the host");
        }
    }
}

void check_job(const kernels::Communicator& world, const Schedule& schedule, const Options& options) {
    const std::int64_t needed = all_ranks(schedule);
    if (needed != world.size()) {
        throw InputError(fmt::format("the plan '{}' is for {} ranks, but this job has {}: start it with mpirun -n {}",
                                     schedule.plan, needed, world.size(), needed));
    }
    if (options.checkpoint_every < 1) {
        throw InputError(fmt::format("--checkpoint-every {}: at least 1 step", options.checkpoint_every));
    }
    if (options.resume && options.checkpoint.empty()) {
        throw InputError("--resume: say where from with --checkpoint DIR");
    }
    if (options.steps < 1) throw InputError(fmt::format("--steps {}: at least 1 is needed", options.steps));
    const bool by_chance = schedule.servers.count > 0 || options.first_idle;
    if (options.resume && options.check_gradients && by_chance) {
        throw InputError(
            "--check-gradients with --resume: who came first before the checkpoint is not known; leave out one");
    }
    check_types(schedule);
    check_own_ways(schedule);
    check_pools(schedule, options);
    check_tables(schedule, options);
    if (schedule.servers.shared || schedule.servers.copies > 1 || schedule.servers.quorum < 1) {
        throw InputError(
            fmt::format("run: plan '{}': servers run apart, without copies and with all groups, in this "
                        "version; leave out place, copies and quorum",
                        schedule.plan));
    }
}

}  // namespace rehearse::run
