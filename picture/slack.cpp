// SPDX-License-Identifier: Apache-2.0
#include "picture/slack.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace rehearse::picture {

namespace {

constexpr std::int64_t tolerance = 2;  // ns: starts and ends are rounded for themselves
constexpr std::size_t most_events = 200'000, longest = 100'000;

}  // namespace

bool knows_slack(const Lanes& lanes) { return !lanes.dependencies.empty() && lanes.size() <= most_events; }

Slack::Slack(const Lanes& lanes) : lanes_(lanes) {
    for (const Lane& lane : lanes.lanes) {
        first_of_.push_back(nodes_);
        nodes_ += static_cast<Node>(lane.size());
    }
    unit_of_.resize(nodes_);
    std::iota(unit_of_.begin(), unit_of_.end(), Node{0});
    members_.resize(nodes_);
    add_lanes_and_iterations();
    add_programs();
    join_flows();
    close_edges();
    count_back();
}

EventAt Slack::event(Node node) const {
    const auto lane = static_cast<std::size_t>(std::ranges::upper_bound(first_of_, node) - first_of_.begin()) - 1;
    return {lane, node - first_of_[lane]};
}
std::int64_t Slack::start(Node node) const {
    const EventAt at = event(node);
    return lanes_.lanes[at.lane].start(at.event);
}
std::int64_t Slack::end(Node node) const {
    const EventAt at = event(node);
    return lanes_.lanes[at.lane].end(at.event);
}

// The first event of an iteration waits for the last of the iteration before it, on all lanes of its rank.
void Slack::add_lanes_and_iterations() {
    std::map<std::pair<std::int64_t, int>, std::vector<Node>> last_of;  // by rank and iteration
    for (std::size_t l = 0; l < lanes_.lanes.size(); ++l) {
        const Lane& lane = lanes_.lanes[l];
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const Node here = node({l, i});
            if (i > 0) edges_.emplace_back(here, here - 1);
            if (i + 1 == lane.size() || lane.iteration(i + 1) != lane.iteration(i))
                last_of[{lane.rank, lane.iteration(i)}].push_back(here);
        }
    }
    for (std::size_t l = 0; l < lanes_.lanes.size(); ++l) {
        const Lane& lane = lanes_.lanes[l];
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (i > 0 && lane.iteration(i) == lane.iteration(i - 1)) continue;
            const auto before = last_of.find({lane.rank, lane.iteration(i) - 1});
            if (before == last_of.end()) continue;
            for (const Node earlier : before->second) edges_.emplace_back(node({l, i}), earlier);
        }
    }
}

// Events of a rank are told apart as the program does: by stream, name and micro-batch, and their order among these.
void Slack::add_programs() {
    using Key = std::tuple<Stream, std::string, int>;
    std::map<std::int64_t, const Dependencies*> of_rank;
    for (const Dependencies& each : lanes_.dependencies) {
        for (const std::int64_t rank : each.ranks) of_rank[rank] = &each;
    }
    std::map<const Dependencies*, std::map<Key, std::vector<int>>> steps_of;
    for (const Dependencies& each : lanes_.dependencies) {
        for (std::size_t s = 0; s < each.steps.size(); ++s) {
            const Dependencies::Step& step = each.steps[s];
            steps_of[&each][{step.stream, step.step, step.micro_batch}].push_back(static_cast<int>(s));
        }
    }
    for (std::size_t begin = 0, end = 0; begin < lanes_.lanes.size(); begin = end) {
        const std::int64_t rank = lanes_.lanes[begin].rank;
        while (end < lanes_.lanes.size() && lanes_.lanes[end].rank == rank) ++end;
        const auto program = of_rank.find(rank);
        if (program == of_rank.end()) continue;
        const auto& steps = steps_of[program->second];
        std::map<std::pair<int, int>, Node> node_of;  // by iteration and step
        for (std::size_t l = begin; l < end; ++l) {
            const Lane& lane = lanes_.lanes[l];
            std::unordered_map<std::uint32_t, const std::vector<int>*> known;  // by what an event says
            std::map<std::pair<int, const std::vector<int>*>, std::size_t> seen;
            for (std::size_t i = 0; i < lane.size(); ++i) {
                const auto [place, is_new] = known.try_emplace(lane.what(i), nullptr);
                if (is_new) {
                    const What& what = lanes_.whats[lane.what(i)];
                    const auto found = steps.find({lane.stream, what.step, what.micro_batch});
                    if (found != steps.end()) place->second = &found->second;
                }
                if (place->second == nullptr) continue;
                const std::size_t n = seen[{lane.iteration(i), place->second}]++;
                if (n < place->second->size()) node_of[{lane.iteration(i), (*place->second)[n]}] = node({l, i});
            }
        }
        for (const auto& [place, later] : node_of) {
            for (const int before : program->second->steps[static_cast<std::size_t>(place.second)].after) {
                const auto earlier = node_of.find({place.first, before});
                if (earlier != node_of.end()) edges_.emplace_back(later, earlier->second);
            }
        }
    }
}

void Slack::join_flows() {
    std::unordered_map<std::uint32_t, std::vector<Node>> of_flow;
    for (std::size_t l = 0; l < lanes_.lanes.size(); ++l) {
        const auto flows = lanes_.lanes[l].flows();
        for (std::size_t i = 0; i < flows.size(); ++i) {
            if (flows[i] != 0) of_flow[flows[i]].push_back(node({l, i}));
        }
    }
    for (auto& [flow, members] : of_flow) {
        if (members.size() < 2) continue;
        std::ranges::sort(members, {}, [this](Node n) { return start(n); });
        const bool has_left = members.size() == 2 && end(members[0]) <= start(members[1]) + tolerance;
        if (has_left) {
            edges_.emplace_back(members[1], members[0]);
            continue;
        }
        for (const Node member : members) unit_of_[member] = members[0];
        members_[members[0]] = std::move(members);
    }
}

void Slack::close_edges() {
    std::erase_if(edges_, [this](const auto& edge) { return unit_of_[edge.first] == unit_of_[edge.second]; });
    std::ranges::sort(edges_);
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    edges_of_.assign(nodes_ + 1, 0);
    for (const auto& [later, earlier] : edges_) ++edges_of_[later + 1];
    std::partial_sum(edges_of_.begin(), edges_of_.end(), edges_of_.begin());
    begin_.resize(nodes_);
    for (Node n = 0; n < nodes_; ++n) begin_[n] = start(n);
    for (Node n = 0; n < nodes_; ++n) begin_[unit_of_[n]] = std::max(begin_[unit_of_[n]], begin_[n]);
}

// From what nothing waits for backwards: a unit is known when all that wait for it are.
void Slack::count_back() {
    std::vector<std::uint32_t> waiters(nodes_, 0);
    for (const auto& [later, earlier] : edges_) ++waiters[unit_of_[earlier]];
    slack_.assign(nodes_, INT64_MAX);
    std::vector<Node> known;
    for (Node n = 0; n < nodes_; ++n) {
        slack_[unit_of_[n]] = std::min(slack_[unit_of_[n]], lanes_.last - end(n));
        if (unit_of_[n] == n && waiters[n] == 0) known.push_back(n);
    }
    while (!known.empty()) {
        const Node unit = known.back();
        known.pop_back();
        const std::int64_t latest = begin_[unit] + slack_[unit];
        const auto each = [&](Node later) {
            for (std::size_t e = edges_of_[later]; e < edges_of_[later + 1]; ++e) {
                const Node earlier = edges_[e].second, before = unit_of_[earlier];
                slack_[before] = std::min(slack_[before], std::max<std::int64_t>(latest - end(earlier), 0));
                if (--waiters[before] == 0) known.push_back(before);
            }
        };
        if (members_[unit].empty()) each(unit);
        for (const Node member : members_[unit]) each(member);
    }
}

// What held the event up: as those of one flow begin together, that is what ended last of all that they wait for.
std::optional<Slack::Wait> Slack::last_wait(Node of) const {
    std::optional<Wait> last;
    const auto look = [&](Node later, std::int64_t by) {
        for (std::size_t e = edges_of_[later]; e < edges_of_[later + 1]; ++e) {
            const Node earlier = edges_[e].second;
            if (!last || end(earlier) > end(last->earlier) + by) last = Wait{later, earlier};
        }
    };
    look(of, 0);
    for (const Node member : members_[unit_of_[of]]) look(member, tolerance);
    return last;
}

std::vector<PathStep> Slack::path() const {
    std::vector<PathStep> path;
    if (nodes_ == 0) return path;
    Node now = 0;
    for (Node n = 1; n < nodes_; ++n) {
        if (end(n) > end(now)) now = n;
    }
    while (path.size() < longest) {
        path.push_back({event(now), 0});
        const auto wait = last_wait(now);
        if (!wait) break;
        if (wait->later != now) path.push_back({event(wait->later), 0});
        path.back().waited = std::max<std::int64_t>(start(wait->later) - end(wait->earlier), 0);
        now = wait->earlier;
    }
    std::ranges::reverse(path);
    return path;
}

}  // namespace rehearse::picture
