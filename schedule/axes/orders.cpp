// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace rehearse::schedule {

namespace {

/// `warm_up` forwards, then one forward and one backward in turn, then what is left of the backwards.
Order alternating(const Order& forwards, const Order& backwards, int warm_up) {
    const auto first = static_cast<std::size_t>(warm_up);
    Order order{forwards.begin(), forwards.begin() + warm_up};
    for (std::size_t i = 0; i < backwards.size(); ++i) {
        if (first + i < forwards.size()) order.push_back(forwards[first + i]);
        order.push_back(backwards[i]);
    }
    return order;
}

/// 1F1B of whole turns, of which a rank of the stage has so many micro-batches each.
Order turns_together(StageIndex stage, const PipelineShape& shape) {
    int turn = 1;
    for (const int copies : shape.copies) turn = std::lcm(turn, copies);
    const int each = turn / shape.copies[at(stage)];
    Order order;
    for (const Item& whole : one_f_one_b(stage, {shape.stages, shape.micro_batches / each})) {
        for (int i = 0; i < each; ++i) order.push_back({whole.forward, whole.micro_batch * each + i, 0});
    }
    return order;
}

}  // namespace

Order gpipe(StageIndex /*stage*/, PipelineShape shape) {
    Order order;
    for (const bool forward : {true, false}) {
        for (int i = 0; i < shape.micro_batches; ++i) order.push_back({forward, i, 0});
    }
    return order;
}

Order one_f_one_b(StageIndex stage, PipelineShape shape) {
    int ahead = shape.stages - 1 - stage;
    if (!shape.copies.empty() && shape.together) return turns_together(stage, shape);
    if (!shape.copies.empty()) {
        const auto from = shape.copies.subspan(at(stage));
        ahead = (std::reduce(from.begin(), from.end()) - 1) / from.front();
    }
    Order forwards, backwards;
    for (int i = 0; i < shape.micro_batches; ++i) {
        forwards.push_back({true, i, 0});
        backwards.push_back({false, i, 0});
    }
    return alternating(forwards, backwards, std::min(ahead, shape.micro_batches));
}

Order pipedream(StageIndex stage, PipelineShape shape) { return one_f_one_b(stage, shape); }

Order interleaved(StageIndex stage, PipelineShape shape) {
    const int in_round = shape.stages * shape.chunks;
    const int total = shape.micro_batches * shape.chunks;
    Order forwards, backwards;
    for (int i = 0; i < total; ++i) {
        const int micro_batch = i / in_round * shape.stages + i % shape.stages;
        const int chunk = i % in_round / shape.stages;
        forwards.push_back({true, micro_batch, chunk});
        backwards.push_back({false, micro_batch, shape.chunks - 1 - chunk});
    }
    const int ahead = 2 * (shape.stages - 1 - stage) + (shape.chunks - 1) * shape.stages;
    return alternating(forwards, backwards, std::min(ahead, total));
}

Order one_by_one(PipelineShape shape) {
    Order order;
    for (int i = 0; i < shape.micro_batches; ++i) {
        for (int chunk = 0; chunk < shape.chunks; ++chunk) order.push_back({true, i, chunk});
        for (int chunk = shape.chunks; chunk-- > 0;) order.push_back({false, i, chunk});
    }
    return order;
}

std::span<const PipelineStrategy> pipeline_strategies() {
    static constexpr std::array strategies{
        PipelineStrategy{"1f1b", "one forward, one backward; least memory", one_f_one_b},
        PipelineStrategy{"gpipe", "all forwards, then all backwards", gpipe},
        PipelineStrategy{"pipedream", "1f1b that updates the weights after each micro-batch, asynchronously", pipedream,
                         true},
        PipelineStrategy{"interleaved", "1f1b with several chunks a stage; smaller bubble, more messages", interleaved},
    };
    return strategies;
}

int most_in_flight(const Order& order, int chunks) {
    std::vector<int> in_flight(static_cast<std::size_t>(chunks));
    int most = 0;
    for (const Item& item : order) {
        int& now = in_flight[static_cast<std::size_t>(item.chunk)];
        now += item.forward ? 1 : -1;
        most = std::max(most, now);
    }
    return most;
}

std::string draw(const Order& order, int chunks) {
    std::string picture;
    for (const Item& item : order) {
        if (!picture.empty()) picture += ' ';
        picture += fmt::format("{}{}", item.forward ? 'F' : 'B', item.micro_batch);
        if (chunks > 1) picture += static_cast<char>('a' + item.chunk);
    }
    return picture;
}

}  // namespace rehearse::schedule
