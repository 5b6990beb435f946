// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/index.hpp"
#include "sim/collective/follower.hpp"

namespace rehearse::sim {

namespace {

template <typename Value>
std::span<const Value> part(const std::vector<Value>& all, const std::vector<std::int32_t>& ends, std::int64_t i) {
    const std::size_t begin = i == 0 ? 0 : at(ends[at(i - 1)]);
    return std::span{all}.subspan(begin, at(ends[at(i)]) - begin);
}

// Sorts messages by the ranks at their ends.
void by_rank(Tracks::Track& track, const std::vector<PatternMessage>& messages, std::int64_t ranks) {
    std::vector<std::int32_t> next(at(ranks) + 1, 0);
    for (const PatternMessage& m : messages) {
        ++next[at(m.from) + 1];
        ++next[at(m.to) + 1];
    }
    for (std::size_t r = 1; r < next.size(); ++r) next[r] += next[r - 1];
    track.ends_of_rank.assign(next.begin() + 1, next.end());
    track.of_rank.resize(2 * messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
        for (const std::int32_t rank : {messages[i].from, messages[i].to}) {
            track.of_rank[at(next[at(rank)]++)] = static_cast<std::int32_t>(i);
        }
    }
}

}  // namespace

MaxMin::Route Tracks::Track::route(std::int32_t message) const {
    return {part(links, ends, message), weights.empty() ? std::span<const double>{} : part(weights, ends, message)};
}

std::span<const std::int32_t> Tracks::Track::messages_of(RankIndex rank) const {
    return part(of_rank, ends_of_rank, rank);
}

const Tracks::Track& Tracks::of(const Pattern& pattern, std::int64_t ranks) {
    const auto [entry, fresh] = known_.try_emplace(&pattern);
    Track& track = entry->second;
    if (!fresh) return track;
    track.pattern = &pattern;
    std::vector<Hop> hops;
    for (const PatternMessage& message : pattern.messages) {
        wiring_.limiting_route(message.from, message.to, hops);
        track.ends.push_back(static_cast<std::int32_t>(hops.size()));
    }
    const bool spread = wiring_.spread(hops);
    std::size_t h = 0;
    for (const std::int32_t end : track.ends) {
        PerByte alone;
        for (; h < at(end); ++h) {
            alone = std::max(alone, hops[h].cost);
            const auto [number, unknown] =
                numbers_.try_emplace(hops[h].link, static_cast<std::int32_t>(capacities_.size()));
            if (unknown) capacities_.push_back(1 / hops[h].cost.value);
            track.links.push_back(number->second);
            if (spread) track.weights.push_back(hops[h].cost.value * capacities_[at(number->second)]);
        }
        track.alone.push_back(alone);
    }
    by_rank(track, pattern.messages, ranks);
    return track;
}

}  // namespace rehearse::sim
