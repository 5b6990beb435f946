// SPDX-License-Identifier: Apache-2.0
#include "trace/recorded_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::trace {

namespace {

using Kind = ProgramNode::Kind;

constexpr std::array kinds{
    std::pair{"all_reduce", CollectiveKind::all_reduce}, std::pair{"all_gather", CollectiveKind::all_gather},
    std::pair{"reduce_scatter", CollectiveKind::reduce_scatter}, std::pair{"broadcast", CollectiveKind::broadcast},
    std::pair{"all_to_all", CollectiveKind::all_to_all}};

// As core/iterations.hpp has it: of three or more without the first, a warm-up.
int median_step(const Recording& recording) {
    std::vector<std::pair<std::int64_t, int>> lengths;
    const int count = static_cast<int>(recording.steps.size());
    for (int i = count >= 3 ? 1 : 0; i < count; ++i) {
        const RecordedStep& step = recording.steps[static_cast<std::size_t>(i)];
        lengths.emplace_back(step.end - step.start, i);
    }
    std::ranges::sort(lengths);
    return lengths.at((lengths.size() - 1) / 2).second;
}

class Maker {
public:
    Maker(const Recording& recording, std::int64_t ranks) : recording_(recording), ranks_(ranks) {
        const int step = median_step(recording);
        for (const RecordedCall& call : recording.calls)
            if (call.step == step && (call.busy + call.gap > 0 || !recording.on_device)) calls_.push_back(&call);
        for (const RecordedCollective& each : recording.collectives)
            if (each.step == step) collectives_.push_back(&each);
        std::ranges::sort(calls_, {}, [](const RecordedCall* call) { return call->at; });
        std::ranges::sort(collectives_, {}, &RecordedCollective::start);
    }

    // Nodes in the order in which they begin.
    std::vector<ProgramNode> made() {
        std::size_t next = 0;
        for (const RecordedCall* call : calls_) {
            for (; next < collectives_.size() && collectives_[next]->start < call->at; ++next) add(*collectives_[next]);
            add(*call);
        }
        for (; next < collectives_.size(); ++next) add(*collectives_[next]);
        return std::move(nodes_);
    }

private:
    static std::int64_t end_of(const RecordedCall& call) { return call.at + call.busy; }

    void add(const RecordedCall& call) {
        ProgramNode node;
        node.kind = call.part == RecordedCall::Part::loader ? Kind::load : Kind::compute;
        node.name = fmt::format("{}:{}", recording_.name_of(call), to_string(call.part));
        node.time = Seconds{static_cast<double>(call.busy + call.gap) * 1e-9};
        std::int64_t before = 0;
        if (!begun_.empty()) {
            node.after.push_back(begun_.back().second);
            before = end_of(*begun_.back().first);
        }
        const bool updates = call.part == RecordedCall::Part::update;
        for (const auto& [collective, index] : moved_) {
            const bool between = collective->end > before && collective->end <= call.at;
            if (updates || between) node.after.push_back(index);
        }
        std::ranges::sort(node.after);
        begun_.emplace_back(&call, static_cast<int>(nodes_.size()));
        nodes_.push_back(std::move(node));
    }

    void add(const RecordedCollective& collective) {
        ProgramNode node;
        node.kind = Kind::collective;
        node.name = collective.kind;
        const auto* kind = std::ranges::find(kinds, collective.kind, &std::pair<const char*, CollectiveKind>::first);
        if (kind == kinds.end()) refuse(collective, "has no form in execution traces");
        if (!(collective.bytes > Bytes{})) refuse(collective, "does not say its size, as PyTorch 2.2 and later do");
        if (collective.ranks != 0 && collective.ranks != ranks_)
            refuse(collective,
                   fmt::format("is among {} of {} ranks, and does not say which", collective.ranks, ranks_));
        node.collective = kind->second;
        const bool gathers = node.collective == CollectiveKind::all_gather;
        node.bytes = collective.bytes * (1 / static_cast<double>(gathers ? ranks_ : 1));
        const auto ended = std::find_if(begun_.rbegin(), begun_.rend(),
                                        [&](const auto& each) { return end_of(*each.first) <= collective.start; });
        if (ended != begun_.rend()) node.after.push_back(ended->second);
        moved_.emplace_back(&collective, static_cast<int>(nodes_.size()));
        nodes_.push_back(std::move(node));
    }

    [[noreturn]] void refuse(const RecordedCollective& collective, const std::string& why) const {
        throw InputError(fmt::format("{}: a collective, {}, {}", recording_.path, collective.kind, why));
    }

    const Recording& recording_;
    std::int64_t ranks_;
    std::vector<const RecordedCall*> calls_;
    std::vector<const RecordedCollective*> collectives_;
    std::vector<ProgramNode> nodes_;
    std::vector<std::pair<const RecordedCall*, int>> begun_;  // and their nodes
    std::vector<std::pair<const RecordedCollective*, int>> moved_;
};

}  // namespace

RankPrograms programs_of(std::span<const Recording> recordings) {
    const std::int64_t ranks = recordings.front().ranks;
    RankPrograms programs;
    programs.ranks.resize(at(ranks));
    programs.groups.emplace_back();
    for (RankIndex rank{0}; rank < ranks; ++rank) {
        programs.groups.front().push_back(rank);
        const auto of = std::ranges::find(recordings, rank, &Recording::rank);
        if (of == recordings.end() || std::ssize(recordings) != ranks || of->ranks != ranks) {
            throw InputError(fmt::format("{}: traces of {} ranks, {} are given{}: one of each is needed",
                                         recordings.front().path, ranks, recordings.size(),
                                         of == recordings.end() ? fmt::format(", none of rank {}", rank) : ""));
        }
        programs.ranks[at(rank)] = Maker{*of, ranks}.made();
    }
    return programs;
}

}  // namespace rehearse::trace
