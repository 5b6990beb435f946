// SPDX-License-Identifier: Apache-2.0
#include "calibrate/message_places.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "calibrate/collective_times.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

std::string name_of(const CollectiveRow& row) {
    if (row.kind == message_kind) return fmt::format("a message of {}", to_string(row.bytes));
    return fmt::format("{} of {} among {} ranks on {} node{}{}{}", row.kind, to_string(row.bytes), row.ranks, row.hosts,
                       row.hosts == 1 ? "" : "s", row.algorithm.empty() ? "" : " by ", row.algorithm);
}

std::string_view word_of(Between between) { return between == Between::nodes ? "nodes" : "devices"; }

void check_place(const CollectiveRow& row, const Machine& machine, const std::string& where) {
    const std::int64_t each = devices_per_node(machine.nodes.front());
    if (row.hosts > node_count(machine)) {
        throw InputError(fmt::format("{}: {}: machine '{}' has {} node{}", where, name_of(row), machine.name,
                                     node_count(machine), node_count(machine) == 1 ? "" : "s"));
    }
    if (row.ranks % row.hosts != 0)
        throw InputError(fmt::format("{}: {}: right would be as many ranks on each node", where, name_of(row)));
    if (row.ranks / row.hosts > each) {
        throw InputError(fmt::format("{}: {}: a node of machine '{}' has {} device{}", where, name_of(row),
                                     machine.name, each, each == 1 ? "" : "s"));
    }
}

Between between_of(const CollectiveRow& row, std::optional<Between> asked, const Machine& machine,
                   const std::string& where) {
    if (row.hosts == 0) {
        if (asked) return *asked;
        if (node_count(machine) < 2) return Between::devices;
        throw InputError(
            fmt::format("{}: it does not say whether the ranks share a node: give --between devices or "
                        "--between nodes",
                        where));
    }
    const Between told = row.hosts == 1 ? Between::devices : Between::nodes;
    if (!asked || *asked == told) return told;
    throw InputError(
        fmt::format("{}: its {} ranks are on {} host{}, so messages are between {}: leave out --between {}", where,
                    row.ranks, row.hosts, row.hosts == 1 ? "" : "s", word_of(told), word_of(*asked)));
}

std::vector<std::int64_t> numbers_of_nodes(std::int64_t ranks, const Machine& machine) {
    const std::int64_t each = devices_per_node(machine.nodes.front());
    std::vector<std::int64_t> numbers;
    for (std::int64_t nodes = 2; nodes <= std::min(ranks, node_count(machine)); ++nodes) {
        if (ranks % nodes == 0 && ranks / nodes <= each) numbers.push_back(nodes);
    }
    return numbers;
}

CollectiveRow placed(CollectiveRow row, Between between, const Machine& machine, const std::string& where) {
    if (row.hosts > 0) return row;
    row.hosts = 1;
    if (between == Between::devices) return row;
    const std::vector<std::int64_t> numbers = numbers_of_nodes(row.ranks, machine);
    if (numbers.size() > 1) {
        throw InputError(
            fmt::format("{}: {} ranks may be on {} nodes of machine '{}', and the file does not tell: give --nodes N",
                        where, row.ranks, fmt::join(numbers, " or "), machine.name));
    }
    row.hosts = numbers.empty() ? row.ranks : numbers.front();  // none: check_place says why
    return row;
}

}  // namespace rehearse::calibrate
