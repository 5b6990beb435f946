// SPDX-License-Identifier: Apache-2.0
// What rounds collectives consist of.
#include <algorithm>
#include <utility>

#include "sim/collective/collectives.hpp"
#include "sim/collective/in_switch.hpp"

namespace rehearse::sim {

namespace {

// Messages of a buffer that is cut evenly differ by one element at most, and count as their mean: nanoseconds, in
// rounds whose latency is a thousand times that. Smaller buffers leave some ranks out.
constexpr std::int64_t even_from = 8;
// Among so many ranks that each has little to send, every rank having some is enough.
constexpr std::int64_t even_among_many = 2;

double mean_size(const std::vector<Message>& messages) {
    double sum = 0;
    for (const Message& p : messages) sum += static_cast<double>(p.elements);
    return messages.empty() ? 0 : sum / static_cast<double>(messages.size());
}

std::vector<Flow> flows_of(const Groups& groups, const std::vector<Message>& messages) {
    std::vector<Flow> flows;
    flows.reserve(messages.size() * static_cast<std::size_t>(groups.count));
    for (std::int64_t group = 0; group < groups.count; ++group) {
        for (const Message& p : messages) flows.push_back({groups.rank(group, p.from), groups.rank(group, p.to)});
    }
    return flows;
}

}  // namespace

Stage Collectives::make_stage(const Call& call, const Groups& groups, const Collective& rounds, Phase phase) {
    const std::vector<Message> messages = rounds.messages(phase.first_round);
    const std::vector<Flow> flows = flows_of(groups, messages);
    Stage stage;
    stage.repeats = phase.repeats;
    stage.share = call.elements == 0 ? 0 : mean_size(messages) / static_cast<double>(call.elements);
    stage.passes = messages.empty() ? 0 : passes(messages.front().combine);
    if (equal_sizes(messages, rounds.group())) {
        stage.pattern = patterns_.of_equal(flows);
    } else {
        std::vector<Bytes> bytes;
        for (std::size_t i = 0; i < flows.size(); ++i) {
            bytes.push_back(bytes_of(messages[i % messages.size()], call.type));
        }
        stage.pattern = patterns_.of_unequal(flows, bytes);
    }
    const bool between = !flows.empty() && wiring_.across(flows.front().from, flows.front().to);
    if (const std::optional<InSwitch> sums = in_switch(call, groups, wiring_); sums && sums->covers(between)) {
        stage.share *= sums->bytes;
        stage.passes = 0;
        stage.sums = sums;
    }
    return stage;
}

const std::vector<Stage>* Collectives::made_elsewhere(const Key& key) const {
    if (others_ == nullptr) return nullptr;
    const auto found = others_->programs_.find(key);
    const bool made = found != others_->programs_.end() && std::ranges::all_of(found->second, [](const Stage& stage) {
                          return stage.pattern->sizes.empty();
                      });
    return made ? &found->second : nullptr;
}

const std::vector<Stage>& Collectives::stages_of(const Call& call) {
    const std::int64_t size = size_of(mesh_, call.axis);
    const std::int64_t each = size < many_ranks ? even_from : even_among_many;
    // Adasum's dot products are as many however long the vectors.
    const bool even = call.elements >= std::max(each * size, fewest_for_rings);
    const std::int64_t elements = even && is_sum(call.algorithm) ? 0 : call.elements;
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
        const std::optional<InSwitch> sums = in_switch(call, groups, wiring_);
        const Collective rounds = rounds_of(sums ? sums->rounds(call) : call, groups);
        for (const Phase& phase : phases_of(rounds, groups))
            entry->second.push_back(make_stage(call, groups, rounds, phase));
    }
    return entry->second;
}

}  // namespace rehearse::sim
