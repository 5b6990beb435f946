// SPDX-License-Identifier: Apache-2.0
#include "run/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/lag.hpp"
#include "core/methods/servers.hpp"
#include "core/methods/sign_vote.hpp"
#include "core/precision.hpp"
#include "core/weight_versions.hpp"
#include "run/limits_finds.hpp"
#include "run/methods/method.hpp"
#include "run/reference/part_check.hpp"

namespace rehearse::run {

namespace {

// What a rank of a worker would need of the others, or of the servers, beside its weights.
std::string workers_of_ranks(const Asked& asked) {
    const Schedule& schedule = asked.schedule;
    const bool staged = stages(schedule) > 1, pieces = shares_layers(schedule);
    if (schedule.methods.get<Servers>().count == 0 || (!staged && !pieces)) return {};
    const std::string_view with = staged ? "with server and pipe" : "with server and layers that ranks share";
    const auto found = [&](std::string_view what) { return fmt::format("{} {}", what, with); };
    if (schedule.methods.get<Curvature>().period > 0) return found("kfac");
    if (asked.options.patience.value > 0) return found("--patience");
    const bool own_ways = schedule.methods.get<Compression>() != Compression{} || schedule.methods.get<SignVote>().on ||
                          std::ranges::any_of(schedule.classes, combines_gradients);
    if ((pieces || !schedule.stage_copies.empty()) && own_ways) return found("adasum, bits or votes");
    if (pieces && schedule.optimizer == Optimizer::lamb) return found("lamb");
    if (schedule.methods.get<Averaging>().period > 0) return {};
    if (std::ranges::any_of(schedule.classes, updates_each_micro_batch)) return found("pipedream");
    for (const RankClass& rank_class : schedule.classes) {
        if (std::ranges::any_of(rank_class.part.buckets, [](const Bucket& bucket) { return bucket.tie >= 0; }))
            return found("weights that two stages share,");
    }
    return {};
}

std::string pull_of_one(const Asked& asked) {
    const Averaging& averaging = asked.schedule.methods.get<Averaging>();
    const bool alone = shards(asked.schedule.mesh) == 1 && averaging.learners == 1 &&
                       asked.options.by_learners.empty() && asked.schedule.methods.get<Servers>().count == 0;
    return words(averaging.elastic > 0 && alone, "elastic with one model");
}

std::string uneven_tables(const Asked& asked) {
    return of_layers(asked.schedule, [](const Part& part, std::size_t i) -> std::string {
        const auto* op = std::get_if<Communication>(&part.network.layers[i].op);
        if (op == nullptr || op->kept == 0) return {};
        return fmt::format("{} tables are not shared evenly by {} ranks", op->kept, op->parts);
    });
}

std::string momentum_of_tables(const Asked& asked) {
    const Options& options = asked.options;
    // Adam and LAMB are of the other layers: nobody expects rows to be updated by them.
    const bool plain =
        asked.schedule.optimizer != Optimizer::sgd || (options.momentum == 0 && options.weight_decay == 0);
    return words(
        has_direct_updates(asked.schedule) && !plain,
        fmt::format("tables with --momentum {} and --weight-decay {}", options.momentum, options.weight_decay));
}

// What Adam keeps of the squares of gradients g, (1 - beta2) g^2, rounds to 0 in f16 up to 2^-25. Where the divisor is
// then epsilon alone, a step is up to g / epsilon of the learning rate long: no longer than where nothing vanishes,
// about 1 (Kingma and Ba 2015, section 2.1), with an epsilon from the largest such g on. LAMB's steps are as long as
// the weights make them.
std::string vanishing_moments(const Asked& asked) {
    const Options& options = asked.options;
    const bool adam = asked.schedule.optimizer == Optimizer::adam;
    if (!options.check_gradients || !adam || update_type(asked.schedule.precision) != DataType::f16) return {};
    const auto largest = static_cast<float>(std::sqrt(0x1p-25 / (1 - static_cast<double>(options.second_factor))));
    const float epsilon = options.epsilon > 0 ? options.epsilon : default_epsilon(Optimizer::adam);
    return words(epsilon < largest,
                 fmt::format("--check-gradients with --optimizer adam, --precision {} and --epsilon {}, below {}",
                             to_string(asked.schedule.precision), epsilon, largest));
}

}  // namespace

std::span<const Limit> limits() {
    static const std::vector<Limit> all = [] {
        std::vector<Limit> rows;
        for (const std::span<const Limit> some :
             {limits_of_programs(), limits_of_devices(), limits_of_plans(), limits_of_threads()}) {
            rows.insert(rows.end(), some.begin(), some.end());
        }
        return rows;
    }();
    return all;
}

const Limit* first_limit(const Asked& asked, bool program) {
    for (const Limit& limit : limits()) {
        if ((!program || limit.of_program) && !limit.found(asked).empty()) return &limit;
    }
    return nullptr;
}

std::span<const Limit> limits_of_plans() {
    static const auto rows = std::to_array<Limit>({
        {"--precision tf32", "no kernel of run multiplies it; choose fp32",
         [](const Asked& a) { return words(a.schedule.precision == Precision::tf32, "--precision tf32"); }},
        {"--precision fp8", "no kernel of run multiplies it; choose bf16",
         [](const Asked& a) { return words(a.schedule.precision == Precision::fp8, "--precision fp8"); }},
        {"server with workers of several ranks (pipe, tensor, spatial, ...), and adasum, few bits, votes, kfac, lamb, "
         "--patience, pipedream, or weights that two stages share",
         "ranks push and pull each by itself; leave out one", workers_of_ranks},
        {"server with place or copies",
         "servers run on ranks of their own, each weight on one of them; leave out place and copies",
         [](const Asked& a) {
             const Servers& servers = a.schedule.methods.get<Servers>();
             return words(servers.shared || servers.copies > 1, servers.shared ? "place=beside" : "copies");
         }},
        {"server with quorum and without --patience",
         "it says how long nothing may be heard of a worker: --patience 5s",
         [](const Asked& a) {
             const bool cuts = a.schedule.methods.get<Servers>().quorum < 1;
             return words(cuts && a.options.patience.value <= 0, "quorum without --patience");
         }},
        {"elastic with one model", "there is no average for it to be pulled to", pull_of_one},
        {"tables that ranks do not share evenly", "each rank keeps as many as the others, in this version",
         uneven_tables},
        {"tables=shared with momentum or weight decay", "their rows are updated by plain SGD, so that both must be 0",
         momentum_of_tables},
        {"--save, --save-gradients where ranks have states of their own",
         "there is not one model to save: --checkpoint",
         [](const Asked& a) {
             const bool saves = !a.options.save.empty() || !a.options.save_gradients.empty();
             const bool threads = a.schedule.methods.get<Averaging>().learners > 1 || a.options.unlocked > 0;
             return words(saves && (keeps_own_states(a.schedule) || threads), "--save");
         }},
        {"--check-gradients of Adam in f16 with a small --epsilon",
         "squares of gradients vanish below 2^-25, and a step divided by epsilon alone is as long as rounding makes "
         "it; choose mixed, or a larger epsilon",
         vanishing_moments},
        {"--check-gradients with --resume, where bits are sent that rounding may turn",
         "which bits rounding decided before the checkpoint is not known; leave out one",
         [](const Asked& a) {
             const bool by_bits = std::ranges::any_of(methods_of(a.schedule), &MethodRow::by_bits);
             const bool turned = rounds_apart(a.schedule) || a.schedule.methods.get<Lag>().steps > 0;
             return words(a.options.resume && a.options.check_gradients && by_bits && turned,
                          "--check-gradients with --resume");
         }},
        {"--check-gradients with --resume, where ranks come by chance",
         "who came first before the checkpoint is not known; leave out one",
         [](const Asked& a) {
             const bool by_chance = a.schedule.methods.get<Servers>().count > 0 || a.options.first_idle;
             return words(a.options.resume && a.options.check_gradients && by_chance,
                          "--check-gradients with --resume");
         }},
    });
    return rows;
}

}  // namespace rehearse::run
