// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::sim {

namespace {

// Alike rounds that are followed one by one; the pace is that of the later half.
constexpr std::int64_t followed = 16;
constexpr std::int64_t later_half = 8;

double latest(const std::vector<double>& times) { return times.empty() ? 0 : std::ranges::max(times); }

// All ranks moved by the same time in the last round.
bool at_one_pace(const std::vector<double>& now, const std::vector<double>& before) {
    const double pace = now.front() - before.front();
    return std::ranges::equal(now, before, [&](double n, double b) { return std::abs(n - b - pace) <= 1e-9 * pace; });
}

}  // namespace

Collectives::Collectives(const Mesh& mesh, const Wiring& wiring, std::int64_t followed_messages,
                         std::int64_t rank_by_rank, const Collectives* others)
    : mesh_(mesh),
      wiring_(wiring),
      followed_messages_(followed_messages),
      others_(others),
      patterns_(wiring),
      tracks_(wiring),
      library_(wiring) {
    if (ranks(mesh) > rank_by_rank) in_step_.emplace(mesh, wiring);
}

void Collectives::Progress::begin_row() {
    row.clear();
    row_ready = ready;
    row_messages = 0;
    followed.reset();
    followed_count = 0;
}

void Collectives::occupy(Progress& progress, Seconds until) {
    for (double& ready : progress.ready) ready = std::max(ready, until.value);
    progress.begin_row();
    progress.last_pattern = nullptr;
    progress.same_pairs = true;
}

void Collectives::catch_up(Progress& progress, Seconds until) {
    if (latest(progress.ready) < until.value) occupy(progress, until);
}

double Collectives::hold(Progress& progress, Seconds last, const std::vector<double>& sooner) {
    bool later = false;
    for (std::size_t rank = 0; rank < sooner.size(); ++rank) {
        const double until = last.value + sooner[rank];
        later = later || until > progress.ready[rank];
        progress.ready[rank] = std::max(progress.ready[rank], until);
    }
    if (later) occupy(progress, Seconds{0});
    return last.value + std::ranges::min(sooner);
}

void Collectives::delay(Progress& progress, Seconds over, Seconds until) {
    if (latest(progress.ready) != over.value) return;
    for (double& ready : progress.ready) ready = ready == over.value ? until.value : ready + (until - over).value;
    occupy(progress, Seconds{0});
}

Seconds Collectives::library_time(const Call& call) {
    const Key key{call.kind, call.axis, to_string(call.algorithm), call.elements, 1, call.root};
    const auto [entry, fresh] = library_times_.try_emplace({key, call.type});
    if (fresh) entry->second = library_.price(call, mesh_).time;
    return entry->second;
}

void Collectives::run(const Call& call, Seconds earliest, Progress& progress) {
    if (of_library(call.algorithm)) {
        const Seconds begins = std::max(earliest, Seconds{latest(progress.ready)});
        return occupy(progress, begins + library_time(call));
    }
    if (in_step(call)) {
        const Seconds begins = std::max(earliest, Seconds{latest(progress.ready)});
        return occupy(progress, begins + in_step_->time(call));
    }
    const bool begins_row = earliest.value >= latest(progress.ready);
    const std::int64_t more = messages(call);
    if (begins_row) occupy(progress, Seconds{0});
    if (progress.row_messages + more > followed_messages_) progress.begin_row();
    progress.row.push_back({call, earliest});
    progress.row_messages += more;
    for (double& ready : progress.ready) ready = std::max(ready, earliest.value);
    exact_ = true;
    count_through(call, progress);
    const bool few_enough = std::ssize(progress.ready) <= followed_ranks && progress.row_messages <= followed_messages_;
    if (!exact_ && few_enough && progress.work > 0) follow(progress);
}

void Collectives::follow(Progress& progress) {
    if (progress.followed == nullptr) progress.followed = std::make_shared<FollowedRow>(tracks_, progress.row_ready);
    std::optional<std::vector<double>> ready;
    for (; progress.followed_count < progress.row.size(); ++progress.followed_count) {
        const auto& [call, earliest] = progress.row[progress.followed_count];
        const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
        ready = progress.followed->append(stages_of(call), whole, earliest, progress.work);
        if (!ready) return;
    }
    progress.ready = *std::move(ready);
}

void Collectives::count_through(const Call& call, Progress& progress, std::vector<double>* stage_ends) {
    progress.drained.resize(static_cast<std::size_t>(wiring_.link_count()), 0);
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    for (const Stage& stage : stages_of(call)) {
        if (stage_ends != nullptr && &stage != &stages_of(call).front()) stage_ends->push_back(latest(progress.ready));
        progress.take(*stage.pattern);
        const std::int64_t one_by_one = std::min(stage.repeats, followed_rounds(*stage.pattern, progress));
        double half_way = 0;
        double pace = 0;
        std::int64_t round = 0;
        while (round < one_by_one && pace == 0) {
            if (round == one_by_one - later_half) half_way = latest(progress.ready);
            before_ = progress.ready;
            advance(stage, whole * stage.share, progress);
            ++round;
            if (round < stage.repeats && at_one_pace(progress.ready, before_)) pace = progress.ready[0] - before_[0];
        }
        if (progress.undisturbed(*stage.pattern)) drain(*stage.pattern, progress);
        if (round == stage.repeats) continue;
        if (pace == 0) {
            pace = (latest(progress.ready) - half_way) / static_cast<double>(later_half);
            exact_ = false;
        }
        const double rest = pace * static_cast<double>(stage.repeats - round);
        for (double& ready : progress.ready) ready += rest;
        for (double& drained : progress.drained) drained += rest;
    }
}

void Collectives::Progress::take(const Pattern& pattern) {
    same_pairs = same_pairs && (last_pattern == nullptr || last_pattern == &pattern);
    last_pattern = &pattern;
}

std::int64_t Collectives::followed_rounds(const Pattern& pattern, const Progress& progress) {
    if (!progress.undisturbed(pattern) || pattern.messages.empty()) return followed;
    return std::max(followed, few / std::ssize(pattern.messages));
}

// When the message can start: both its ends have ended the round before.
double Collectives::starts(const PatternMessage& m) const { return std::max(before_[at(m.from)], before_[at(m.to)]); }

void Collectives::end(const PatternMessage& m, double sent, Progress& progress) const {
    double& from = progress.ready[at(m.from)];
    double& to = progress.ready[at(m.to)];
    from = std::max(from, sent);
    to = std::max(to, sent + kinds_[at(m.cost)].combining);
}

void Collectives::advance(const Stage& stage, Bytes bytes, Progress& progress) {
    const Pattern& pattern = *stage.pattern;
    kinds_.clear();
    for (const MessageCost& cost : pattern.costs) {
        const Seconds after =
            stage.sums ? stage.sums->stretched(wiring_) : cost.latency + wiring_.beyond(cost.across, bytes, cost.alone);
        kinds_.push_back({(cost.alone * bytes).value, after.value, stage.passes * (cost.combine * bytes).value});
    }
    if (progress.undisturbed(pattern)) {
        for (const PatternMessage& m : pattern.messages) {
            const Kind& kind = kinds_[at(m.cost)];
            end(m, starts(m) + kind.alone + kind.afterwards, progress);
        }
    } else {
        advance_sharing(pattern, bytes, progress);
    }
}

void Collectives::advance_sharing(const Pattern& pattern, Bytes bytes, Progress& progress) {
    const std::size_t count = pattern.messages.size();
    double first = std::numeric_limits<double>::infinity(), last = 0;
    start_.resize(count);
    end_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const PatternMessage& m = pattern.messages[i];
        start_[i] = starts(m);
        first = std::min(first, start_[i]);
        last = std::max(last, start_[i]);
        end_[i] = start_[i] + kinds_[at(m.cost)].alone;
    }
    for (const Meeting& meeting : pattern.meetings) {
        double& drained = progress.drained[at(meeting.link)];
        link_.pass(pattern.members_of(meeting), start_, (meeting.cost * bytes).value, drained, end_);
    }
    exact_ = exact_ && (count == 0 || last - first <= 1e-9 * last);
    for (std::size_t i = 0; i < count; ++i) {
        const PatternMessage& m = pattern.messages[i];
        end(m, end_[i] + kinds_[at(m.cost)].afterwards, progress);
    }
}

// What the last of its rounds, which began at `before_`, keeps links busy until.
void Collectives::drain(const Pattern& pattern, Progress& progress) const {
    for (const Meeting& meeting : pattern.meetings) {
        double& drained = progress.drained[at(meeting.link)];
        for (const std::int32_t i : pattern.members_of(meeting)) {
            const PatternMessage& m = pattern.messages[at(i)];
            drained = std::max(drained, starts(m) + kinds_[at(m.cost)].alone);
        }
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

Bytes Collectives::sent(const Call& call, RankIndex rank) {
    if (of_library(call.algorithm)) return library_sent(call, mesh_);
    if (in_step(call)) return in_step_->sent(call);
    const std::vector<Stage>& stages = stages_of(call);
    std::vector<double>& shares = shares_[&stages];
    if (shares.empty()) {
        shares.resize(at(ranks(mesh_)), 0);
        for (const Stage& stage : stages) {
            const Pattern& pattern = *stage.pattern;
            for (std::size_t i = 0; i < pattern.messages.size(); ++i) {
                const double size = pattern.sizes.empty() ? 1 : pattern.sizes[i];
                shares[at(pattern.messages[i].from)] += size * static_cast<double>(stage.repeats) * stage.share;
            }
        }
    }
    return size_of(call.type) * (shares[at(rank)] * static_cast<double>(call.elements));
}

std::int64_t Collectives::messages(const Call& call) {
    if (of_library(call.algorithm)) return 2 * ranks(mesh_);  // priced as a whole
    if (in_step(call)) return in_step_->messages(call);
    std::int64_t count = 0;
    for (const Stage& stage : stages_of(call)) {
        count += stage.repeats * static_cast<std::int64_t>(stage.pattern->messages.size());
    }
    return count;
}

}  // namespace rehearse::sim
