// SPDX-License-Identifier: Apache-2.0
#include "core/waits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse {

namespace {

/// A class's program: what comes before each step on its stream, and which steps meet on other ranks.
struct ClassProgram {
    /// Collectives by their axis; messages by axis and offset of the sender, whether gradients, and whether sent.
    using Key = std::tuple<int, std::int64_t, bool, int>;
    const std::vector<Step>* steps = nullptr;
    std::map<Stream, std::vector<int>> by_stream{};
    std::vector<int> before{};  // by step: the one before it on its stream, or -1
    std::map<Key, std::vector<int>> by_key{};
    std::vector<int> ordinal{};  // by step: among those of its key

    explicit ClassProgram(const std::vector<Step>& program) : steps(&program) {
        for (std::size_t i = 0; i < program.size(); ++i) {
            std::vector<int>& stream = by_stream[program[i].stream];
            before.push_back(stream.empty() ? -1 : stream.back());
            stream.push_back(static_cast<int>(i));
            ordinal.push_back(0);
            if (const std::optional<Key> key = key_of(program[i])) {
                std::vector<int>& alike = by_key[*key];
                ordinal.back() = static_cast<int>(alike.size());
                alike.push_back(static_cast<int>(i));
            }
        }
    }

    static std::optional<Key> key_of(const Step& step) {
        if (const auto* sum = std::get_if<Communicate>(&step.action)) return Key{sum->axis, 0, false, 0};
        const bool gradients = step.stream == Stream::send_gradients || step.stream == Stream::receive_gradients;
        if (const auto* send = std::get_if<Send>(&step.action)) return Key{send->axis, send->offset, gradients, 1};
        if (const auto* recv = std::get_if<Recv>(&step.action)) return Key{recv->axis, -recv->offset, gradients, 2};
        return std::nullopt;
    }
};

/// A rank that has events, and these by step.
struct Shown {
    RankIndex rank{0};
    int of_class = 0;
    std::vector<const Event*> when{};
};

/// A step of a shown rank.
struct Node {
    int shown = -1, step = -1;
};

class Walk {
public:
    Walk(const Schedule& schedule, std::span<const Event> events, RankIndex rank) : schedule_(schedule), rank_(rank) {
        for (const RankClass& each : schedule.classes) programs_.emplace_back(each.steps);
        shown_of_class_.resize(programs_.size(), -1);
        for (std::size_t first = 0; first < events.size();) {
            std::size_t last = first;
            while (last < events.size() && events[last].rank == events[first].rank) ++last;
            show(events.subspan(first, last - first));
            first = last;
        }
    }

    Waits run(double start, double end) {
        const int own = shown_of_.at(rank_);
        const Shown& shown = shown_[at(own)];
        const std::vector<Step>& steps = *programs_[at(shown.of_class)].steps;
        double idle_since = start;
        std::optional<Node> last;
        for (int i = 0; i < std::ssize(steps); ++i) {
            const Event& event = *shown.when[at(i)];
            if (!last || event.end > this->event(*last).end) last = Node{own, i};
            if (event.stream != Stream::compute) continue;
            if (event.start.value > idle_since) held_up({own, i}, idle_since, event.start.value);
            idle_since = std::max(idle_since, event.end.value);
        }
        if (last && end > idle_since) {
            const double until = through(*last, idle_since, end);
            held_up(last_to_come(*last), idle_since, until);
        }
        return waits_;
    }

private:
    void show(std::span<const Event> events) {
        if (events.front().rank >= ranks(schedule_.mesh)) return;  // servers
        Shown& shown = shown_.emplace_back();
        shown.rank = events.front().rank;
        shown.of_class = class_of(schedule_, shown.rank);
        const ClassProgram& program = programs_[at(shown.of_class)];
        shown.when.resize(program.steps->size());
        require(events.size() == shown.when.size(), "a rank has an event of each of its steps");
        std::map<Stream, std::size_t> next;
        for (const Event& event : events) {
            const std::vector<int>& stream = program.by_stream.at(event.stream);
            shown.when[at(stream.at(next[event.stream]++))] = &event;
        }
        const int number = static_cast<int>(shown_.size()) - 1;
        shown_of_.emplace(shown.rank, number);
        if (shown_of_class_[at(shown.of_class)] < 0) shown_of_class_[at(shown.of_class)] = number;
    }

    const Step& step(Node node) const { return (*program(node).steps)[at(node.step)]; }
    const ClassProgram& program(Node node) const { return programs_[at(shown_[at(node.shown)].of_class)]; }
    const Event& event(Node node) const { return *shown_[at(node.shown)].when[at(node.step)]; }

    int shown_for(RankIndex rank) const {
        const auto found = shown_of_.find(rank);
        return found != shown_of_.end() ? found->second : shown_of_class_[at(class_of(schedule_, rank))];
    }

    /// The other end of a message.
    Node peer(Node node, int axis, std::int64_t offset) const {
        const RankIndex other = neighbour(schedule_.mesh, axis, shown_[at(node.shown)].rank, offset);
        auto key = *ClassProgram::key_of(step(node));
        std::get<3>(key) = 3 - std::get<3>(key);
        const int shown = shown_for(other);
        const ClassProgram& there = programs_[at(shown_[at(shown)].of_class)];
        return {shown, there.by_key.at(key).at(at(program(node).ordinal[at(node.step)]))};
    }

    /// Of a collective, on the rank that came to it last; else the step itself.
    Node last_to_come(Node node) {
        const auto* sum = std::get_if<Communicate>(&step(node).action);
        if (sum == nullptr) return node;
        Node last = node;
        for (const int other : members(node.shown, sum->axis)) {
            const ClassProgram& there = programs_[at(shown_[at(other)].of_class)];
            const auto& alike = there.by_key.at(*ClassProgram::key_of(step(node)));
            const Node its{other, alike.at(at(program(node).ordinal[at(node.step)]))};
            if (event(its).start > event(last).start) last = its;
        }
        return last;
    }

    const std::vector<int>& members(int shown, int axis) {
        const auto [entry, fresh] = members_.try_emplace({shown, axis});
        std::vector<int>& found = entry->second;
        if (!fresh) return found;
        if (shown_.size() == 1) return found = {shown};
        for (const RankIndex rank : group_of(schedule_.mesh, axis, shown_[at(shown)].rank)) {
            found.push_back(shown_for(rank));
        }
        std::ranges::sort(found);
        found.erase(std::ranges::unique(found).begin(), found.end());
        return found;
    }

    void consider(Node node, std::optional<Node>& latest) const {
        if (!latest || event(node).end > event(*latest).end) latest = node;
    }
    void consider_own(Node node, std::optional<Node>& latest) const {
        if (const int before = program(node).before[at(node.step)]; before >= 0) consider({node.shown, before}, latest);
        for (const int before : step(node).after) consider({node.shown, before}, latest);
    }
    /// What ended last of all that a step waits for before it begins.
    std::optional<Node> waited_for(Node node) const {
        std::optional<Node> latest;
        consider_own(node, latest);
        if (const auto* send = std::get_if<Send>(&step(node).action)) {
            consider_own(peer(node, send->axis, send->offset), latest);
        } else if (const auto* recv = std::get_if<Recv>(&step(node).action)) {
            consider_own(peer(node, recv->axis, recv->offset), latest);
        }
        return latest;
    }

    Seconds& part_of(Node node) {
        const Stream stream = event(node).stream;
        if (stream == Stream::io) return waits_.io;
        if (stream != Stream::compute) return waits_.communication;
        const RankIndex rank = shown_[at(node.shown)].rank;
        if (rank == rank_) return waits_.rest;
        const bool other_stage = stage_of(schedule_, rank).stage != stage_of(schedule_, rank_).stage;
        return other_stage ? waits_.bubble : waits_.communication;
    }

    /// `node` is what held the rank up until `to`; from when on nothing is said about it yet.
    double through(Node node, double from, double to) {
        const double began = std::clamp(event(last_to_come(node)).start.value, from, to);
        part_of(node) += Seconds{to - began};
        return began;
    }

    /// Why `node` did not begin before `to`, back to `from`.
    void held_up(Node node, double from, double to) {
        while (to > from) {
            const std::optional<Node> by = waited_for(node);
            const double ended = by ? std::clamp(event(*by).end.value, from, to) : from;
            waits_.rest += Seconds{to - ended};
            if (!by || ended <= from) return;
            to = through(*by, from, ended);
            node = last_to_come(*by);
        }
    }

    const Schedule& schedule_;
    RankIndex rank_;
    std::vector<ClassProgram> programs_;
    std::vector<Shown> shown_;
    std::map<RankIndex, int> shown_of_;
    std::vector<int> shown_of_class_;
    std::map<std::pair<int, int>, std::vector<int>> members_;  // by shown rank and axis
    Waits waits_;
};

}  // namespace

Waits waits(const Schedule& schedule, std::span<const Event> events, RankIndex rank, Seconds start, Seconds end) {
    return Walk{schedule, events, rank}.run(start.value, end.value);
}

}  // namespace rehearse
