// SPDX-License-Identifier: Apache-2.0
#include "sim/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.hpp"
#include "sim/zone.hpp"

namespace rehearse::sim {

namespace {

// Elements of every message of an evenly cut bucket differ by one at most: from this many a rank on, that is under 1 %.
constexpr std::int64_t even_from = 128;

std::int64_t length(const Transfer& t) { return t.end - t.begin; }

bool equal_sizes(const std::vector<Transfer>& transfers) {
    if (transfers.empty()) return true;
    const auto [least, most] = std::ranges::minmax(transfers, {}, length);
    return length(most) - length(least) <= 1;
}

double mean_length(const std::vector<Transfer>& transfers) {
    double sum = 0;
    for (const Transfer& t : transfers) sum += static_cast<double>(length(t));
    return transfers.empty() ? 0 : sum / static_cast<double>(transfers.size());
}

// FNV-1a over the pairs, a word at a time.
std::uint64_t hash_of(const std::vector<Flow>& flows) {
    std::uint64_t hash = 14695981039346656037U;
    for (const Flow& flow : flows) {
        hash = (hash ^ static_cast<std::uint64_t>(flow.from << 32 ^ flow.to)) * 1099511628211U;
        hash ^= hash >> 29;
    }
    return hash;
}

std::vector<Flow> flows_of(const Groups& groups, const std::vector<Transfer>& transfers) {
    std::vector<Flow> flows;
    flows.reserve(transfers.size() * static_cast<std::size_t>(groups.count));
    for (std::int64_t group = 0; group < groups.count; ++group) {
        for (const Transfer& t : transfers) flows.push_back({groups.rank(group, t.from), groups.rank(group, t.to)});
    }
    return flows;
}

}  // namespace

Collectives::Collectives(const Mesh& mesh, const Wiring& wiring) : mesh_(mesh), wiring_(wiring), counter_(wiring) {}

std::shared_ptr<const Collectives::Pattern> Collectives::pattern_of(const Groups& groups,
                                                                    const std::vector<Transfer>& transfers) {
    const std::vector<Flow> flows = flows_of(groups, transfers);
    const std::uint64_t hash = hash_of(flows);
    const auto same = [](const Message& m, const Flow& f) { return m.from == f.from && m.to == f.to; };
    for (auto [it, end] = patterns_.equal_range(hash); it != end; ++it) {
        if (std::ranges::equal(*it->second, flows, same)) return it->second;
    }
    const std::vector<FlowCost> costs = counter_.count(flows);
    auto pattern = std::make_shared<Pattern>();
    pattern->reserve(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const auto [from, to] = flows[i];
        pattern->push_back(
            {static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), costs[i], wiring_.combine(from, to)});
    }
    patterns_.emplace(hash, pattern);
    return pattern;
}

// A round of unequal messages: SimGrid's solver says when each has left, whatever its size was.
Collectives::Pattern Collectives::solved(const Groups& groups, const std::vector<Transfer>& transfers,
                                         DataType type) const {
    const std::vector<Flow> flows = flows_of(groups, transfers);
    std::vector<Bytes> bytes;
    for (std::size_t i = 0; i < flows.size(); ++i) bytes.push_back(bytes_of(transfers[i % transfers.size()], type));
    const std::vector<Seconds> left = solve(wiring_, flows, bytes);
    const Bytes mean = size_of(type) * mean_length(transfers);
    Pattern pattern;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const auto [from, to] = flows[i];
        std::vector<Hop> hops;
        const Seconds latency = wiring_.route(from, to, hops);
        // Per byte of the mean message, because that is what advance() multiplies by.
        const PerByte combine = wiring_.combine(from, to) * (bytes[i] / mean);
        pattern.push_back(
            {static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), {latency + left[i], {}}, combine});
    }
    return pattern;
}

Collectives::Stage Collectives::make_stage(const AllReduceBucket& bucket, const Groups& groups, const AllReduce& rounds,
                                           Phase phase) {
    const std::vector<Transfer> transfers = rounds.round(phase.first_round);
    Stage stage;
    stage.repeats = phase.repeats;
    stage.share = bucket.elements == 0 ? 0 : mean_length(transfers) / static_cast<double>(bucket.elements);
    stage.reduces = !transfers.empty() && transfers.front().combine == Combine::reduce;
    stage.pattern = equal_sizes(transfers) ? pattern_of(groups, transfers)
                                           : std::make_shared<const Pattern>(solved(groups, transfers, bucket.type));
    return stage;
}

const std::vector<Collectives::Stage>& Collectives::stages_of(const AllReduceBucket& bucket) {
    const std::int64_t size = mesh_.axes.at(static_cast<std::size_t>(bucket.axis)).size;
    const std::int64_t elements = bucket.elements >= even_from * size ? 0 : bucket.elements;
    const auto [entry, fresh] = programs_.try_emplace({bucket.axis, to_string(bucket.algorithm), elements});
    if (fresh) {
        const Groups groups = groups_along(mesh_, bucket.axis, bucket.algorithm, wiring_);
        const AllReduce rounds = rounds_of(bucket, groups);
        for (const Phase& phase : rounds.phases()) entry->second.push_back(make_stage(bucket, groups, rounds, phase));
    }
    return entry->second;
}

// All ranks that take part moved by the same time.
bool Collectives::steady(const std::vector<double>& ready) const {
    const auto first = std::ranges::find_if(ready, [](double r) { return std::isfinite(r); }) - ready.begin();
    if (first == std::ssize(ready)) return true;
    const double pace = ready[static_cast<std::size_t>(first)] - before_[static_cast<std::size_t>(first)];
    return std::ranges::equal(ready, before_, [&](double now, double then) {
        return !std::isfinite(now) || std::abs(now - then - pace) <= 1e-12 * pace;
    });
}

void Collectives::run(const AllReduceBucket& bucket, std::vector<double>& ready) {
    const Bytes whole = size_of(bucket.type) * static_cast<double>(bucket.elements);
    for (const Stage& stage : stages_of(bucket)) {
        std::int64_t left = stage.repeats;
        do {
            before_ = ready;
            advance(stage, whole * stage.share, ready);
            --left;
        } while (left > 0 && stage.repeats - left < settle && !steady(ready));
        if (left == 0) continue;
        for (std::size_t r = 0; r < ready.size(); ++r) {
            if (std::isfinite(ready[r])) ready[r] += static_cast<double>(left) * (ready[r] - before_[r]);
        }
    }
}

void Collectives::advance(const Stage& stage, Bytes bytes, std::vector<double>& ready) {
    for (const Message& m : *stage.pattern) {
        const auto from = static_cast<std::size_t>(m.from);
        const auto to = static_cast<std::size_t>(m.to);
        const double sent = std::max(before_[from], before_[to]) + (m.cost.latency + m.cost.wire * bytes).value;
        const double received = stage.reduces ? sent + (m.combine * bytes).value : sent;
        ready[from] = std::max(ready[from], sent);
        ready[to] = std::max(ready[to], received);
    }
}

Bytes Collectives::sent(const AllReduceBucket& bucket, std::int64_t rank) {
    double elements = 0;
    for (const Stage& stage : stages_of(bucket)) {
        const auto messages = std::ranges::count(*stage.pattern, static_cast<std::int32_t>(rank), &Message::from);
        elements += static_cast<double>(messages * stage.repeats) * stage.share * static_cast<double>(bucket.elements);
    }
    return size_of(bucket.type) * elements;
}

std::int64_t Collectives::messages(const AllReduceBucket& bucket) {
    std::int64_t count = 0;
    for (const Stage& stage : stages_of(bucket)) {
        count += stage.repeats * static_cast<std::int64_t>(stage.pattern->size());
    }
    return count;
}

}  // namespace rehearse::sim
