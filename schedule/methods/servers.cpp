// SPDX-License-Identifier: Apache-2.0
#include "schedule/methods/servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/methods/server_memory.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

void read_servers(Plan& plan, std::string_view value) {
    plan.methods.edit<Servers>().count =
        value.empty() ? unknown_servers : read_count("server", value, most_micro_batches);
}
void read_groups(Plan& plan, std::string_view size) { add_axis(plan, "groups", size); }
void read_place(Plan& plan, std::string_view value) {
    plan.methods.edit<Servers>().shared = read_choice("place", value, "apart", "beside");
}
void read_copies(Plan& plan, std::string_view value) {
    plan.methods.edit<Servers>().copies = read_count("copies", value, 100);
}
void read_quorum(Plan& plan, std::string_view value) {
    plan.methods.edit<Servers>().quorum = read_share("quorum", value, 1);
}
void read_dense(Plan& plan, std::string_view value) {
    plan.methods.edit<Servers>().factors = read_choice("dense", value, "gradients", "vectors");
}

constexpr std::array words{
    Word{{"groups", "N", "of a run with servers: N groups, each of which sums its gradients along data first", {}},
         read_groups},
    Word{{"server",
          "N",
          "N servers keep the weights; each data rank, or each group, gives gradients and gets weights without waiting "
          "for the others",
          {}},
         read_servers},
    Word{{"place", "apart|beside", "servers have devices of their own, or share the ranks'; default apart", "server"},
         read_place},
    Word{{"copies", "N", "each weight is on N servers, which follow the first; default 1", "server"}, read_copies},
    Word{{"quorum", "X", "an epoch ends when the share X of the groups is through (Adam: 0.75); default 1", "server"},
         read_quorum},
    Word{
        {"dense", "gradients|vectors",
         "vectors: of a dense layer its inputs and errors are sent, where that is less, and the server multiplies them",
         "server"},
        read_dense},
};

constexpr std::array conflicts{
    Conflict{"zero", When::never, "the servers keep the optimizer's numbers, and each rank the whole weights"},
    Conflict{"lag=1", When::never, "a server applies gradients at once"},
    Conflict{"dense=shared", When::never, "each rank goes its own way, and none has all of the shared layers", "groups",
             "let groups of ranks share them: groups=N"},
    Conflict{"tables=shared", When::never, "each rank goes its own way, and they look up for each other", "groups"},
    Conflict{"local", When::never, "servers of models keep their average", "elastic",
             "say by how much models are pulled to it, like elastic=0.1"},
};
constexpr std::array conflicts_of_averages{
    Conflict{"learners", When::later, "servers are given one model a rank"},
    Conflict{"groups", When::never, "each rank has a model of its own"},
    Conflict{"dense=vectors", When::never, "no gradients are sent"},
};
constexpr std::array conflicts_of_groups{
    Conflict{"tables=shared", When::never, "servers update, and rows are updated by the ranks that have them"},
};
constexpr std::array conflicts_of_vectors{
    Conflict{"expert", When::never, "ranks that share experts sum their gradients"},
    Conflict{"kfac", When::later, "servers would multiply rows that inverses have changed"},
    Conflict{"groups", When::never, "a group sums its gradients"},
    Conflict{"copies", When::never, "copies of a stage sum their gradients"},
    Conflict{"spatial", When::never, "gradients of shared images are sums"},
};
constexpr std::array needs_of_groups{Need{"server", "server=N", "what the groups have in common"},
                                     Need{"data", "data=N", "the ranks of a group"}};

constexpr std::array features{
    Feature{"server", "server=1,data", [](const Asked& a) { return a.plan.methods.get<Servers>().count != 0; },
            conflicts},
    Feature{"groups", "server=1,groups=2,data", [](const Asked& a) { return has_axis(a.plan, "groups"); },
            conflicts_of_groups, needs_of_groups},
    Feature{"dense=vectors", "server=1:dense=vectors,data",
            [](const Asked& a) { return a.plan.methods.get<Servers>().factors; }, conflicts_of_vectors},
    Feature{"server+elastic", "server=1,data:local=2:elastic=0.5",
            [](const Asked& a) {
                return a.plan.methods.get<Servers>().count != 0 && a.plan.methods.get<Averaging>().elastic != 0;
            },
            conflicts_of_averages},
};

void complete(Plan& plan) {
    if (plan.methods.get<Servers>().count == unknown_servers) throw InputError("server needs a number, like server=2");
    if (plan.methods.get<Servers>().count > 0 &&
        plan.methods.get<Servers>().copies > plan.methods.get<Servers>().count) {
        throw InputError(fmt::format("copies={} of the weights need as many servers, there are {}",
                                     plan.methods.get<Servers>().copies, plan.methods.get<Servers>().count));
    }
}

class ServedSteps : public MethodSteps {
public:
    ServedSteps(StepContext& context, BucketSteps& buckets)
        : MethodSteps(context, buckets),
          server_of_(servers_of(context.part.buckets, context.schedule.methods.get<Servers>().count)),
          vectors_(
              with_vectors(context.plan.methods.get<Servers>().factors, context.part, context.schedule.batch_per_rank)),
          traded_by_(context.part.buckets.size(), none) {}

    bool makes_gradient(int bucket) const override { return !vectors_[at(bucket)]; }
    void summed(int bucket) override {
        if (!averages() && !preconditions()) push_pull(bucket);
    }
    bool update() override {
        if (averages()) return false;
        for (int b = 0; b < buckets_.count() && preconditions(); ++b) push_pull(b);
        for (int b = 0; b < buckets_.count(); ++b) hand_on(b);
        return true;
    }
    void end() override {
        for (int b = 0; b < buckets_.count() && averages(); ++b) push_pull(b);
    }

private:
    bool averages() const { return context_.schedule.methods.get<Averaging>().period > 0; }

    /// Whether what is pushed are K-FAC's directions, of which a step may have several.
    bool preconditions() const { return context_.schedule.methods.get<Curvature>().period > 0; }

    /// Samples of a step of these ranks.
    std::int64_t batch() const { return context_.samples * context_.schedule.micro_batches; }

    /// What a bucket's server computes for one trade.
    std::vector<Problem> work(int b) const {
        const Bucket& bucket = context_.part.buckets[at(b)];
        const Schedule& schedule = context_.schedule;
        // A model and the average go into the average; what the model gives up stays in cache until it leaves.
        // Where the average goes on by its last step, that is added, too.
        std::vector<Problem> result;
        if (averages()) {
            result.assign(schedule.methods.get<Averaging>().momentum > 0 ? 2 : 1, sum_of(bucket.elements));
            return result;
        }
        if (vectors_[at(b)]) {
            result.push_back(
                {context_.layers()[at(bucket.layers.front())].op, Pass::backward_weights, batch(), DataType::f32});
        } else if (schedule.methods.get<Compression>() != Compression{} || schedule.methods.get<Rounding>().type) {
            result.push_back(sum_of(bucket.elements));  // gradients again, of what has come
        }
        const Op op = update_op(schedule.optimizer, bucket.elements, tensors(context_.part.network, bucket));
        result.push_back({op, Pass::update, 1, update_type(schedule.precision)});
        return result;
    }

    /// Of a bucket's gradients, in elements of the type in which weights come back.
    std::int64_t elements_sent(std::int64_t whole) const {
        const Schedule& schedule = context_.schedule;
        const Bytes each = size_of(wire_type(schedule.precision));
        const auto& by = schedule.methods.get<Compression>();
        const std::optional<DataType> rounded = schedule.methods.get<Rounding>().type;
        Bytes sent = static_cast<double>(whole) * (rounded ? size_of(*rounded) : each);
        if (by != Compression{}) sent = static_cast<double>(compressed_words(by, whole)) * size_of(DataType::f32);
        return static_cast<std::int64_t>(std::ceil(sent / each));
    }

    void push_pull(int b) {
        const Bucket& bucket = context_.part.buckets[at(b)];
        std::int64_t sent = elements_sent(bucket.elements);
        std::vector<int> after{context_.last_compute, context_.ready_by[at(b)]};
        if (vectors_[at(b)]) {
            const int layer = bucket.layers.front();
            const auto& dense = std::get<MatMul>(context_.layers()[at(layer)].op);
            sent = batch() * dense.m * (dense.n + dense.k);
            const std::vector<int>& gradients = context_.gradient_by[at(layer)];
            after.insert(after.end(), gradients.begin(), gradients.end());
        }
        PushPull action{.bucket = BucketIndex{b},
                        .server = server_of_[at(b)],
                        .group = AxisIndex{buckets_.sharing(b) > 1 ? bucket.axis : none},
                        .sent = sent,
                        .received = bucket.elements,
                        .type = wire_type(context_.schedule.precision),
                        .work = work(b)};
        traded_by_[at(b)] =
            context_.append(fmt::format("bucket{}:trade{}", b, preconditions() ? buckets_.which_time() : ""),
                            Stream::send_gradients, std::move(action), std::move(after));
        if (preconditions()) context_.weights_by.push_back(traded_by_[at(b)]);
    }

    /// What the first of a group has got, to the others.
    void hand_on(int b) {
        if (buckets_.sharing(b) == 1) return;
        Communicate action = buckets_.message(b, CollectiveKind::broadcast);
        action.content = Content::weights;
        action.type = wire_type(context_.schedule.precision);
        action.algorithm = {.name = "tree"};
        const int step = buckets_.append(std::move(action), {traded_by_[at(b)]});
        if (preconditions()) context_.weights_by.push_back(step);
    }

    std::vector<int> server_of_;  // by bucket
    std::vector<bool> vectors_;   // by bucket: its layer's inputs and errors are sent
    std::vector<int> traded_by_;  // by bucket: the step that brings its new weights
};

std::unique_ptr<MethodSteps> steps(StepContext& context, BucketSteps& buckets) {
    return context.schedule.methods.get<Servers>().count > 0 ? std::make_unique<ServedSteps>(context, buckets)
                                                             : nullptr;
}

std::vector<int> bucket_begins(const Plan& plan, const Stage& stage, const Schedule& schedule) {
    if (!plan.methods.get<Servers>().factors) return {};
    return alone_in_buckets(stage.part.network, schedule.batch_per_rank);
}

/// Servers that have no devices of their own lie on the ranks'.
void add_memory(const Schedule& schedule, const RankClass& /*rank_class*/, MemoryUse& use) {
    if (!schedule.methods.get<Servers>().shared) return;
    const MemoryUse server = server_memory(schedule);
    use.weights += server.weights;
    use.optimizer += server.optimizer;
    use.communication += server.communication;
}

}  // namespace

extern const Method servers;  // a row of table.cpp
constinit const Method servers{
    .name = "servers",
    .summary = "servers keep the weights, ranks or groups trade with them",
    .vocabulary = {words, features, complete},
    .alone = [](const Plan& plan) { return plan.methods.get<Servers>().count > 0 && !has_axis(plan, "groups"); },
    .bucket_begins = bucket_begins,
    .add_memory = add_memory,
    .steps = steps};

std::vector<int> servers_of(const std::vector<Bucket>& buckets, std::int64_t count) {
    std::vector<std::size_t> order(buckets.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return buckets[a].elements > buckets[b].elements; });
    std::vector<std::int64_t> load(static_cast<std::size_t>(count));
    std::vector<int> server_of(buckets.size());
    for (const std::size_t bucket : order) {
        const auto least = std::ranges::min_element(load);
        *least += buckets[bucket].elements;
        server_of[bucket] = static_cast<int>(least - load.begin());
    }
    return server_of;
}

bool sends_vectors(const Op& op, std::int64_t samples) {
    const auto* dense = std::get_if<MatMul>(&op);
    return dense != nullptr && !dense->tied && samples * dense->m * (dense->n + dense->k) < parameters(op);
}

std::vector<int> alone_in_buckets(const Network& network, std::int64_t samples) {
    std::vector<int> begins;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        if (!sends_vectors(network.layers[i].op, samples)) continue;
        begins.push_back(static_cast<int>(i));
        begins.push_back(static_cast<int>(i) + 1);
    }
    return begins;
}

std::vector<bool> with_vectors(bool wanted, const Part& part, std::int64_t samples) {
    std::vector<bool> result;
    for (const Bucket& bucket : part.buckets) {
        const Op& op = part.network.layers[static_cast<std::size_t>(bucket.layers.front())].op;
        result.push_back(wanted && bucket.layers.size() == 1 && sends_vectors(op, samples));
    }
    return result;
}

}  // namespace rehearse::schedule
