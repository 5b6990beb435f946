// SPDX-License-Identifier: Apache-2.0
#include "models/reader/machine_charge.hpp"

#include "core/file.hpp"
#include "models/models.hpp"
#include "models/reader/machine_extends.hpp"
#include "models/reader/machine_files.hpp"
#include "models/this_host.hpp"

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

std::optional<Charge> load_charge(const std::string& name_or_file) {
    load_machine(name_or_file);  // says all that is wrong with it
    if (name_or_file == this_host_name) return std::nullopt;
    // A path may have an '@' of its own, a transport follows the last one.
    for (const std::string& wanted : {name_or_file, name_or_file.substr(0, name_or_file.rfind('@'))}) {
        if (const auto text = shipped_machine(wanted)) {
            const Extended file{*text, wanted};
            Reader top = file.reader();
            return parse_charge(top);
        }
        if (!wanted.ends_with(".toml")) continue;
        const Extended file{read_file(wanted), wanted};
        Reader top = file.reader();
        return parse_charge(top);
    }
    return std::nullopt;
}

std::optional<Queue> longest_queue(const Charge& charge, std::int64_t nodes) {
    std::optional<Queue> best;
    for (const Queue& queue : charge.queues)
        if (queue.least <= nodes && nodes <= queue.most && (!best || queue.wall > best->wall)) best = queue;
    return best;
}

}  // namespace rehearse::models
