// SPDX-License-Identifier: Apache-2.0
// Limits of a rank's threads, which train at the same time (run/methods/worker_threads.hpp), and of devices.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/combined_updates.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/servers.hpp"
#include "core/methods/trust_ratios.hpp"
#include "core/ring_attention.hpp"
#include "core/weight_versions.hpp"
#include "run/limits.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

/// Whether Adasum combines gradients that several ranks have made together of their samples.
bool combines_shared_gradients(const Schedule& schedule) {
    if (std::ranges::none_of(schedule.classes, combines_gradients)) return false;
    return std::ranges::any_of(schedule.classes, [&](const RankClass& rank_class) {
        return std::ranges::any_of(rank_class.part.buckets, [&](const Bucket& bucket) {
            return shards_in(schedule.mesh, bucket.axis, RankIndex{0}).size() > 1;
        });
    });
}

bool has_learners(const Asked& asked) { return asked.schedule.methods.get<Averaging>().learners > 1; }
bool has_threads(const Asked& asked) { return has_learners(asked) || asked.options.unlocked > 0; }

std::string paces_without_threads(const Asked& asked) {
    const bool paces = asked.options.first_idle || !asked.options.learner_paces.empty();
    return paces && !has_threads(asked) ? "--assign or --learner-paces" : "";
}

std::string threads_beside_axes(const Asked& asked) {
    for (const Axis& axis : asked.schedule.mesh.axes) {
        if (has_threads(asked) && axis.name != "data" && axis.size > 1) return axis.name + " with a rank's threads";
    }
    return {};
}

std::string unlocked_without_local(const Asked& asked) {
    const Averaging& averaging = asked.schedule.methods.get<Averaging>();
    const bool local = averaging.period > 0 && averaging.elastic == 0 && !has_learners(asked);
    return asked.options.unlocked > 0 && (!local || asked.schedule.methods.get<Servers>().count > 0) ? "--unlocked"
                                                                                                     : "";
}

std::string idle_threads(const Asked& asked) {
    const int threads = asked.options.unlocked, updates = asked.schedule.methods.get<Averaging>().period;
    return threads > updates ? fmt::format("--unlocked: {} threads share {} updates a step", threads, updates) : "";
}

std::string ordered_updates(const Asked& asked) {
    const Options& options = asked.options;
    const bool sums = asked.schedule.optimizer == Optimizer::sgd && options.momentum == 0 && options.weight_decay == 0;
    return options.unlocked > 0 && !sums
               ? fmt::format("--unlocked with {}, --momentum {} and --weight-decay {}",
                             to_string(asked.schedule.optimizer), options.momentum, options.weight_decay)
               : "";
}

std::string wrong_paces(const Asked& asked) {
    const std::vector<double>& paces = asked.options.learner_paces;
    if (paces.empty() || !has_threads(asked)) return {};
    const int threads =
        asked.options.unlocked > 0 ? asked.options.unlocked : asked.schedule.methods.get<Averaging>().learners;
    const bool right = std::ranges::all_of(paces, [](double pace) { return pace >= 1 && pace <= 1000; });
    return paces.size() != at(threads) || !right ? fmt::format("--learner-paces: {} numbers are needed", threads) : "";
}

std::string on_device(const Asked& asked, bool found) {
    return found && asked.device != "cpu" ? fmt::format("--device {}", asked.device) : "";
}

std::string versions_on_device(const Asked& asked) {
    return on_device(
        asked, std::ranges::any_of(asked.schedule.classes, [](const RankClass& c) { return weight_versions(c) > 1; }));
}

std::string tie_on_device(const Asked& asked) {
    return on_device(asked, std::ranges::any_of(asked.schedule.classes, [](const RankClass& rank_class) {
                         return std::ranges::any_of(rank_class.part.buckets,
                                                    [](const Bucket& bucket) { return bucket.tie >= 0; });
                     }));
}

std::string tables_on_device(const Asked& asked) {
    return on_device(asked, std::ranges::any_of(asked.schedule.classes, [](const RankClass& rank_class) {
                         return std::ranges::any_of(rank_class.part.network.layers,
                                                    [](const Layer& layer) { return updates_directly(layer.op); });
                     }));
}

}  // namespace

std::span<const Limit> limits_of_threads() {
    static const auto rows = std::to_array<Limit>({
        {"--assign, --learner-paces without threads",
         "they are of several learners, as in --plan data:learners=2, or of --unlocked threads, and the plan has none",
         paces_without_threads},
        {"learners or --unlocked beside other axes than data", "a rank's threads train whole networks, in this version",
         threads_beside_axes},
        {"learners or --unlocked with shares", "a rank's threads train on parts of one size, in this version",
         [](const Asked& a) {
             const bool both = has_threads(a) && !a.schedule.shares.samples.empty();
             return std::string{both ? "shares with a rank's threads" : ""};
         }},
        {"--unlocked without local=N", "it goes with local=N alone: threads make its updates of one model",
         unlocked_without_local},
        {"--unlocked with more threads than local has updates", "give local=N with more", idle_threads},
        {"--unlocked with momentum, weight decay, Adam or LAMB",
         "updates that nothing orders are sums, as of SGD with --momentum 0 and --weight-decay 0", ordered_updates},
        {"--unlocked with kfac", "factors would be of one model and several threads; choose learners",
         [](const Asked& a) {
             const bool both = a.options.unlocked > 0 && a.schedule.methods.get<Curvature>().period > 0;
             return std::string{both ? "--unlocked with kfac" : ""};
         }},
        {"--learner-paces that do not fit", "give one from 1 to 1000 for each of a rank's threads", wrong_paces},
    });
    return rows;
}

std::span<const Limit> limits_of_devices() {
    static const auto rows = std::to_array<Limit>({
        {"learners on a device",
         "the models of a rank's learners are kept on the host; give each a rank, or share one by --learners",
         [](const Asked& a) { return on_device(a, has_learners(a)); }},
        {"--unlocked on a device", "its threads are of the host; leave out --device",
         [](const Asked& a) { return on_device(a, a.options.unlocked > 0); }},
        {"kfac on a device", "its factors are inverted on the host",
         [](const Asked& a) { return on_device(a, a.schedule.methods.get<Curvature>().period > 0); }},
        {"allreduce=adasum beside layers that ranks share, on a device", "their gradients are averaged on the host",
         [](const Asked& a) { return on_device(a, combines_shared_gradients(a.schedule)); }},
        {"combine=updates on a device", "differences of weights are taken on the host",
         [](const Asked& a) { return on_device(a, a.schedule.methods.get<CombinedUpdates>().on); }},
        {"schedule=pipedream on a device", "its versions of the weights are kept on the host", versions_on_device},
        {"a table that two stages share, on a device",
         "the gradient of a table that two stages share is turned on the host", tie_on_device},
        {"ring=on on a device", "blocks of attention are joined on the host",
         [](const Asked& a) { return on_device(a, a.schedule.methods.get<RingAttention>().on); }},
        {"LAMB of pieces of tensors on a device", "their norms are taken on the host",
         [](const Asked& a) { return on_device(a, has_known_norms(a.schedule)); }},
        {"tables=shared on a device", "rows of its tables are updated on the host", tables_on_device},
    });
    return rows;
}

}  // namespace rehearse::run
