// SPDX-License-Identifier: Apache-2.0
#include "sim/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "sim/solver.hpp"

namespace rehearse::sim {

namespace {

// Messages of a buffer that is cut evenly differ by one element at most, and count as their mean: nanoseconds, in
// rounds whose latency is a thousand times that. Smaller buffers leave some ranks out.
constexpr std::int64_t even_from = 8;
// Among so many ranks that each has little to send, every rank having some is enough.
constexpr std::int64_t even_among_many = 2;

// Alike rounds that are followed one by one; the pace is that of the later half.
constexpr std::int64_t followed = 16;
constexpr std::int64_t later_half = 8;

bool equal_sizes(const std::vector<Parcel>& parcels) {
    if (parcels.empty()) return true;
    const auto [least, most] = std::ranges::minmax(parcels, {}, &Parcel::elements);
    return most.elements - least.elements <= 1;
}

double mean_size(const std::vector<Parcel>& parcels) {
    double sum = 0;
    for (const Parcel& p : parcels) sum += static_cast<double>(p.elements);
    return parcels.empty() ? 0 : sum / static_cast<double>(parcels.size());
}

std::vector<Flow> flows_of(const Groups& groups, const std::vector<Parcel>& parcels) {
    std::vector<Flow> flows;
    flows.reserve(parcels.size() * static_cast<std::size_t>(groups.count));
    for (std::int64_t group = 0; group < groups.count; ++group) {
        for (const Parcel& p : parcels) flows.push_back({groups.rank(group, p.from), groups.rank(group, p.to)});
    }
    return flows;
}

double latest(const std::vector<double>& times) { return times.empty() ? 0 : std::ranges::max(times); }

// All ranks moved by the same time in the last round.
bool at_one_pace(const std::vector<double>& now, const std::vector<double>& before) {
    const double pace = now.front() - before.front();
    return std::ranges::equal(now, before, [&](double n, double b) { return std::abs(n - b - pace) <= 1e-9 * pace; });
}

}  // namespace

Collectives::Collectives(const Mesh& mesh, const Wiring& wiring, std::int64_t followed_messages,
                         std::int64_t rank_by_rank, const Collectives* others)
    : mesh_(mesh), wiring_(wiring), followed_messages_(followed_messages), others_(others), patterns_(wiring) {
    if (ranks(mesh) > rank_by_rank) in_step_.emplace(mesh, wiring);
}

Collectives::Stage Collectives::make_stage(const Call& call, const Groups& groups, const Collective& rounds,
                                           Phase phase) {
    const std::vector<Parcel> parcels = rounds.parcels(phase.first_round);
    const std::vector<Flow> flows = flows_of(groups, parcels);
    Stage stage;
    stage.repeats = phase.repeats;
    stage.share = call.elements == 0 ? 0 : mean_size(parcels) / static_cast<double>(call.elements);
    stage.passes = parcels.empty() ? 0 : passes(parcels.front().combine);
    stage.equal = equal_sizes(parcels);
    if (stage.equal) {
        stage.pattern = patterns_.of_equal(flows);
    } else {
        std::vector<Bytes> bytes;
        for (std::size_t i = 0; i < flows.size(); ++i) {
            bytes.push_back(bytes_of(parcels[i % parcels.size()], call.type));
        }
        stage.pattern = patterns_.of_unequal(flows, bytes);
    }
    return stage;
}

const std::vector<Collectives::Stage>* Collectives::made_elsewhere(const Key& key) const {
    if (others_ == nullptr) return nullptr;
    const auto found = others_->programs_.find(key);
    const bool made = found != others_->programs_.end() && std::ranges::all_of(found->second, &Stage::equal);
    return made ? &found->second : nullptr;
}

const std::vector<Collectives::Stage>& Collectives::stages_of(const Call& call) {
    const std::int64_t size = size_of(mesh_, call.axis);
    const std::int64_t each = size < many_ranks ? even_from : even_among_many;
    // Adasum's dot products are as many however long the vectors.
    const std::int64_t elements = call.elements >= each * size && is_sum(call.algorithm) ? 0 : call.elements;
    const auto [entry, fresh] = programs_.try_emplace({call.kind, call.axis, to_string(call.algorithm), elements,
                                                       pipeline_pieces(call.algorithm, call.elements), call.root});
    if (!fresh) return entry->second;
    if (const std::vector<Stage>* made = made_elsewhere(entry->first)) {
        for (Stage stage : *made) {
            stage.pattern = patterns_.weighed(stage.pattern);
            entry->second.push_back(std::move(stage));
        }
    } else {
        const Groups groups = groups_along(mesh_, call.axis, call.algorithm, wiring_);
        const Collective rounds = rounds_of(call, groups);
        for (const Phase& phase : rounds.phases()) entry->second.push_back(make_stage(call, groups, rounds, phase));
    }
    return entry->second;
}

void Collectives::occupy(Progress& progress, Seconds until) {
    for (double& ready : progress.ready) ready = std::max(ready, until.value);
    progress.row.clear();
    progress.row_ready = progress.ready;
    progress.row_messages = 0;
}

void Collectives::catch_up(Progress& progress, Seconds until) {
    if (latest(progress.ready) < until.value) occupy(progress, until);
}

void Collectives::run(const Call& call, Seconds earliest, Progress& progress) {
    if (in_step(call)) {
        const Seconds begins = std::max(earliest, Seconds{latest(progress.ready)});
        return occupy(progress, begins + in_step_->time(call));
    }
    const bool begins_row = earliest.value >= latest(progress.ready);
    const std::int64_t more = messages(call);
    if (begins_row || progress.row_messages + more > followed_messages_) {
        occupy(progress, Seconds{0});
    }
    progress.row.push_back({call, earliest});
    progress.row_messages += more;
    for (double& ready : progress.ready) ready = std::max(ready, earliest.value);
    together_ = true;
    count_through(call, progress);
    if (together_ || progress.row_messages > followed_messages_) return;
    progress.ready = follow(mesh_, progress.row, wiring_, progress.row_ready);
}

void Collectives::count_through(const Call& call, Progress& progress, std::vector<double>* stage_ends) {
    progress.drained.resize(static_cast<std::size_t>(wiring_.link_count()), 0);
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    for (const Stage& stage : stages_of(call)) {
        if (stage_ends != nullptr && &stage != &stages_of(call).front()) stage_ends->push_back(latest(progress.ready));
        const std::int64_t one_by_one = std::min(stage.repeats, followed);
        double half_way = 0;
        double pace = 0;
        std::int64_t round = 0;
        while (round < one_by_one && pace == 0) {
            if (round == followed - later_half) half_way = latest(progress.ready);
            before_ = progress.ready;
            advance(stage, whole * stage.share, progress);
            ++round;
            if (round < stage.repeats && at_one_pace(progress.ready, before_)) pace = progress.ready[0] - before_[0];
        }
        if (round == stage.repeats) continue;
        if (pace == 0) pace = (latest(progress.ready) - half_way) / static_cast<double>(later_half);
        const double rest = pace * static_cast<double>(stage.repeats - round);
        for (double& ready : progress.ready) ready += rest;
        for (double& drained : progress.drained) drained += rest;
    }
}

void Collectives::advance(const Stage& stage, Bytes bytes, Progress& progress) {
    const Pattern& pattern = *stage.pattern;
    const std::size_t count = pattern.messages.size();
    start_.resize(count);
    end_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const Message& m = pattern.messages[i];
        start_[i] = std::max(before_[static_cast<std::size_t>(m.from)], before_[static_cast<std::size_t>(m.to)]);
        end_[i] = start_[i] + (pattern.costs[static_cast<std::size_t>(m.cost)].alone * bytes).value;
    }
    const auto [first, last] = std::ranges::minmax_element(start_);
    together_ = together_ && (count == 0 || *last - *first <= 1e-9 * *last);
    for (const Meeting& meeting : pattern.meetings) {
        const auto members = std::span{pattern.members}.subspan(static_cast<std::size_t>(meeting.first),
                                                                static_cast<std::size_t>(meeting.last - meeting.first));
        link_.pass(members, start_, (meeting.cost * bytes).value,
                   progress.drained[static_cast<std::size_t>(meeting.link)], end_);
    }
    afterwards_.clear();
    for (const MessageCost& cost : pattern.costs)
        afterwards_.push_back((cost.latency + wiring_.beyond(cost.across, bytes, cost.alone)).value);
    for (std::size_t i = 0; i < count; ++i) {
        const Message& m = pattern.messages[i];
        const MessageCost& cost = pattern.costs[static_cast<std::size_t>(m.cost)];
        const double sent = end_[i] + afterwards_[static_cast<std::size_t>(m.cost)];
        const double received = sent + stage.passes * (cost.combine * bytes).value;
        double& from = progress.ready[static_cast<std::size_t>(m.from)];
        double& to = progress.ready[static_cast<std::size_t>(m.to)];
        from = std::max(from, sent);
        to = std::max(to, received);
    }
}

std::vector<Collectives::Span> Collectives::spans(const Call& call) {
    require(!in_step(call), "spans are of ranks that are followed one by one");
    Progress progress;
    progress.ready.resize(static_cast<std::size_t>(ranks(mesh_)), 0);
    std::vector<double> ends;
    count_through(call, progress, &ends);
    ends.push_back(latest(progress.ready));
    std::vector<Span> spans;
    double begin = 0;
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    for (const Stage& stage : stages_of(call)) {
        const double end = ends.back() > 0 ? ends[spans.size()] / ends.back() : 1;
        spans.push_back({stage.pattern, whole * (stage.share * static_cast<double>(stage.repeats)), begin, end});
        begin = end;
    }
    return spans;
}

Bytes Collectives::sent(const Call& call, std::int64_t rank) {
    if (in_step(call)) return in_step_->sent(call);
    double elements = 0;
    for (const Stage& stage : stages_of(call)) {
        const auto messages =
            std::ranges::count(stage.pattern->messages, static_cast<std::int32_t>(rank), &Message::from);
        elements += static_cast<double>(messages * stage.repeats) * stage.share * static_cast<double>(call.elements);
    }
    return size_of(call.type) * elements;
}

std::int64_t Collectives::messages(const Call& call) {
    if (in_step(call)) return in_step_->messages(call);
    std::int64_t count = 0;
    for (const Stage& stage : stages_of(call)) {
        count += stage.repeats * static_cast<std::int64_t>(stage.pattern->messages.size());
    }
    return count;
}

}  // namespace rehearse::sim
