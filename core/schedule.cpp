// SPDX-License-Identifier: Apache-2.0
#include "core/schedule.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/servers.hpp"
#include "core/methods/synchronous.hpp"
#include "core/precision.hpp"
#include "core/ring_attention.hpp"

namespace rehearse {

Action::Action() = default;
Action::Action(const Action&) = default;
Action::Action(Action&&) noexcept = default;
Action& Action::operator=(const Action&) = default;
Action& Action::operator=(Action&&) noexcept = default;
Action::~Action() = default;

Schedule::Schedule() = default;
Schedule::Schedule(const Schedule&) = default;
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule& Schedule::operator=(const Schedule&) = default;
Schedule& Schedule::operator=(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

std::string_view to_string(Precision precision) { return types_of(precision).name; }

std::string_view to_string(Optimizer optimizer) {
    switch (optimizer) {
        case Optimizer::sgd:
            return "sgd";
        case Optimizer::adam:
            return "adam";
        case Optimizer::lamb:
            return "lamb";
    }
    return "?";
}

std::int64_t moments(Optimizer optimizer) { return optimizer == Optimizer::sgd ? 1 : 2; }

Op update_op(Optimizer optimizer, std::int64_t count, std::int64_t tensors) {
    if (optimizer == Optimizer::sgd) return SgdUpdate{count};
    if (optimizer == Optimizer::adam) return AdamUpdate{count};
    return LambUpdate{count, tensors};
}

std::int64_t tensors(const Network& network, const Bucket& bucket) {
    std::int64_t sum = 0;
    for (const int layer : bucket.layers) {
        sum += static_cast<std::int64_t>(weights(network.layers.at(static_cast<std::size_t>(layer)).op).size());
    }
    return sum;
}

const Problem* problem_of(const Step& step) {
    if (const auto* compute = std::get_if<Compute>(&step.action)) return &compute->problem;
    if (const auto* update = std::get_if<Update>(&step.action)) return &update->problem;
    const auto* precondition = std::get_if<Precondition>(&step.action);
    return precondition == nullptr ? nullptr : &precondition->problem;
}

namespace {

bool shares_along(const Schedule& schedule, int axis) {
    return !schedule.shares.samples.empty() && schedule.mesh.axes.at(static_cast<std::size_t>(axis)).name == "data";
}

}  // namespace

std::int64_t classes_along(const Schedule& schedule, int axis) {
    if (shares_along(schedule, axis)) return std::ranges::max(schedule.shares.kind) + 1;
    return schedule.mesh.axes.at(static_cast<std::size_t>(axis)).size;
}

int class_of(const Schedule& schedule, RankIndex rank) {
    const std::vector<std::int64_t> at = coordinates(schedule.mesh, rank);
    std::int64_t index = 0;
    for (const int axis : schedule.class_axes) {
        const std::int64_t place = at[static_cast<std::size_t>(axis)];
        const bool by_share = shares_along(schedule, axis);
        index = index * classes_along(schedule, axis) +
                (by_share ? schedule.shares.kind[static_cast<std::size_t>(place)] : place);
    }
    return static_cast<int>(index);
}

Shares shares_of(std::vector<std::int64_t> samples) {
    Shares shares;
    std::vector<std::int64_t> known;
    for (const std::int64_t each : samples) {
        const auto kind = std::ranges::find(known, each);
        shares.kind.push_back(static_cast<int>(kind - known.begin()));
        if (kind == known.end()) known.push_back(each);
    }
    if (known.size() < 2) return {};
    shares.samples = std::move(samples);
    return shares;
}

std::int64_t samples_of(const Schedule& schedule, std::int64_t shard) {
    const std::vector<std::int64_t>& samples = schedule.shares.samples;
    return samples.empty() ? schedule.batch_per_rank : samples.at(static_cast<std::size_t>(shard));
}

std::int64_t first_sample(const Schedule& schedule, std::int64_t shard) {
    if (schedule.shares.samples.empty()) return shard * schedule.batch_per_rank;
    std::int64_t first = 0;
    for (std::int64_t before = 0; before < shard; ++before) first += samples_of(schedule, before);
    return first;
}

int stages(const Schedule& schedule) {
    if (!schedule.stage_copies.empty()) return static_cast<int>(schedule.stage_copies.size());
    const int pipe = axis_index(schedule.mesh, "pipe");
    return pipe < 0 ? 1 : static_cast<int>(size_of(schedule.mesh, pipe));
}

StagePlace stage_at(const Schedule& schedule, std::int64_t place) {
    if (schedule.stage_copies.empty()) return {.stage = StageIndex{place}, .first = place};
    StagePlace found{.copies = schedule.stage_copies.front()};
    while (place >= found.first + found.copies) {
        found.first += found.copies;
        found.stage = StageIndex{found.stage + 1};
        found.copies = schedule.stage_copies.at(at(found.stage));
    }
    found.copy = static_cast<int>(place - found.first);
    return found;
}

StagePlace stage_of(const Schedule& schedule, RankIndex rank) {
    const int pipe = axis_index(schedule.mesh, "pipe");
    return pipe < 0 ? StagePlace{} : stage_at(schedule, place_on(schedule.mesh, pipe, rank));
}

bool is_last(const Schedule& schedule, const RankClass& rank_class, int micro_batch) {
    return micro_batch + rank_class.copies >= schedule.micro_batches;
}

std::int64_t batch_of(const Schedule& schedule, const RankClass& rank_class) {
    return rank_class.batch > 0 ? rank_class.batch : schedule.batch_per_rank;
}

namespace {

bool has_own_samples(const Axis& axis) { return axis.name == "data" || axis.name == "groups" || axis.name == "expert"; }

}  // namespace

std::int64_t shards(const Mesh& mesh) {
    std::int64_t count = 1;
    for (const Axis& axis : mesh.axes) count *= has_own_samples(axis) ? axis.size : 1;
    return count;
}

std::int64_t shard_of(const Mesh& mesh, RankIndex rank) {
    const std::vector<std::int64_t> at = coordinates(mesh, rank);
    std::int64_t shard = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
        if (has_own_samples(mesh.axes[i])) shard = shard * mesh.axes[i].size + at[i];
    }
    return shard;
}

std::int64_t global_batch(const Schedule& schedule) { return first_sample(schedule, shards(schedule.mesh)); }

std::int64_t micro_batch_size(const Schedule& schedule) { return schedule.batch_per_rank / schedule.micro_batches; }
std::int64_t micro_batch_size(const Schedule& schedule, const RankClass& rank_class) {
    return batch_of(schedule, rank_class) / schedule.micro_batches;
}

bool combines_gradients(const RankClass& rank_class) {
    return std::ranges::any_of(rank_class.steps, [](const Step& step) {
        const auto* sum = std::get_if<Communicate>(&step.action);
        return sum != nullptr && sum->of_bucket() && !is_sum(sum->algorithm);
    });
}

bool gathers_weights(const RankClass& rank_class) {
    for (const Step& step : rank_class.steps) {
        if (std::holds_alternative<Update>(step.action)) return false;  // from here on they are gathered to stay
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr || !action->of_bucket() || action->content != Content::usual) continue;
        if (action->kind == CollectiveKind::all_gather) return true;
    }
    return false;
}

namespace {

class Checker {
public:
    Checker(const Schedule& schedule, const RankClass& rank_class)
        : schedule_(schedule), rank_class_(rank_class), part_(rank_class.part) {
        require(part_.origins.size() == part_.network.layers.size(), "each layer of a part has an origin");
    }
    void operator()(const Compute& compute) const {
        require(in(compute.layer, part_.network.layers), "a compute step names a layer of its part");
        micro_batch(compute.micro_batch);
    }
    void operator()(const Communicate& communicate) const {
        require(is_axis(schedule_.mesh, communicate.axis), "a collective names an axis");
        if (!communicate.of_bucket()) return moved(communicate.layer(), communicate.micro_batch);
        require(in(communicate.bucket(), part_.buckets), "a collective names a bucket");
        const Content content = communicate.content;
        if (content == Content::compressed || content == Content::factors || content == Content::norms) return;
        const Bucket& bucket = part_.buckets[at(communicate.bucket())];
        const std::int64_t whole = communicate.axis == bucket.tie ? bucket.tied : bucket.elements;
        require(schedule_.methods.get<Synchronous>().whole_variables ? communicate.elements >= whole
                                                                     : communicate.elements == whole,
                "a collective is of its whole bucket");
    }
    void operator()(const Update& update) const {
        require(in(update.bucket, part_.buckets), "an update names a bucket");
    }
    void operator()(const Send& send) const {
        require(in(send.axis, schedule_.mesh.axes), "a send names an axis");
        moved(send.layer, send.micro_batch);
    }
    void operator()(const Recv& recv) const {
        require(in(recv.axis, schedule_.mesh.axes), "a receive names an axis");
        moved(recv.layer, recv.micro_batch);
    }
    void operator()(const Load& /*load*/) const {}
    void operator()(const Precondition& precondition) const {
        const bool factor = precondition.work == Precondition::Work::factor;
        require(in(precondition.bucket, part_.buckets) == factor, "a factor, and nothing else, is of a bucket");
        micro_batch(precondition.micro_batch);
    }
    void operator()(const PushPull& push_pull) const {
        require(in(push_pull.bucket, part_.buckets), "a push and pull names a bucket");
        require(push_pull.server >= 0 && push_pull.server < schedule_.methods.get<Servers>().count,
                "a push and pull names a server");
        require(push_pull.group < 0 || is_axis(schedule_.mesh, push_pull.group), "a push and pull names an axis");
    }

private:
    static bool in(int index, const auto& list) { return index >= 0 && index < static_cast<int>(list.size()); }
    void micro_batch(int index) const {
        require(index >= 0 && index < schedule_.micro_batches, "a step names a micro-batch");
        require(index % rank_class_.copies == rank_class_.copy, "a step is of its copy's micro-batches");
    }
    // A test's schedule may leave the layer out.
    void moved(int layer, int index) const {
        micro_batch(index);
        if (layer < 0) return;
        require(in(layer, part_.network.layers) &&
                    (std::holds_alternative<Communication>(part_.network.layers[at(layer)].op) ||
                     ring_of(schedule_, part_, layer) > 1),
                "what ranks give each other is a Communication's, or keys of an attention's ring");
    }

    const Schedule& schedule_;
    const RankClass& rank_class_;
    const Part& part_;
};

}  // namespace

void check(const Schedule& schedule) {
    std::size_t classes = 1;
    for (const int axis : schedule.class_axes) classes *= static_cast<std::size_t>(classes_along(schedule, axis));
    require(classes == schedule.classes.size(), "one rank class for each coordinate on the class axes");
    const std::vector<std::int64_t>& shares = schedule.shares.samples;
    require(shares.empty() || (static_cast<std::int64_t>(shares.size()) == shards(schedule.mesh) &&
                               std::ranges::max(shares) == schedule.batch_per_rank),
            "a share for each copy, the largest of them batch_per_rank");
    for (const RankClass& rank_class : schedule.classes) {
        require(rank_class.copies == 1 || !schedule.stage_copies.empty(), "copies are of a pipeline's stage");
        const Checker checker{schedule, rank_class};
        for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
            const Step& step = rank_class.steps[i];
            std::visit(checker, step.action);
            for (const int before : step.after) {
                require(before >= 0 && static_cast<std::size_t>(before) < i, "a step waits for an earlier one");
            }
        }
    }
}

}  // namespace rehearse
