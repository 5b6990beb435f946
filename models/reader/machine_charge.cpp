// SPDX-License-Identifier: Apache-2.0
#include "models/reader/machine_charge.hpp"

namespace rehearse::models {
namespace {

Queue parse_queue(Reader reader) {
    Queue queue{.name = reader.text("name"), .wall = {}, .source = {}};
    const std::vector<std::int64_t> nodes = reader.counts("nodes");
    if (nodes.size() != 2 || nodes[0] > nodes[1])
        reader.fail("nodes", "nodes are the fewest and the most of a job: nodes = [1, 64]");
    queue.least = nodes[0];
    queue.most = nodes[1];
    const auto wall = reader.figure<Seconds>("wall", Reader::Least::above_zero);
    queue.wall = wall.value;
    queue.source = wall.source;
    reader.done();
    return queue;
}

}  // namespace

std::optional<Charge> parse_charge(Reader& top) {
    auto table = top.table("charge", "charge");
    if (!table) return std::nullopt;
    Charge charge{table->text("unit"), table->figure<double>("factor", Reader::Least::zero), {}};
    for (const Reader& reader : table->tables("queue", "charge: queue")) charge.queues.push_back(parse_queue(reader));
    table->done();
    return charge;
}

std::optional<Queue> longest_queue(const Charge& charge, std::int64_t nodes) {
    std::optional<Queue> best;
    for (const Queue& queue : charge.queues)
        if (queue.least <= nodes && nodes <= queue.most && (!best || queue.wall > best->wall)) best = queue;
    return best;
}

}  // namespace rehearse::models
