// SPDX-License-Identifier: Apache-2.0
#include "core/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/collective_patterns.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse {

namespace {

constexpr std::string_view hierarchical_name = "hierarchical";

const Pattern* find_pattern(std::string_view name) {
    const auto found = std::ranges::find(flat_patterns(), name, &Pattern::name);
    return found == flat_patterns().end() ? nullptr : &*found;
}

const Pattern& pattern_of(std::string_view name) {
    const Pattern* found = find_pattern(name);
    require(found != nullptr, "an algorithm that parse_algorithm accepted");
    return *found;
}

void check_name(std::string_view name, std::string_view text) {
    if (find_pattern(name) != nullptr) return;
    std::vector<std::string_view> known;
    for (const Pattern& pattern : flat_patterns()) known.push_back(pattern.name);
    if (name == text) known.push_back(hierarchical_name);
    throw InputError(fmt::format("all-reduce '{}': unknown algorithm '{}'{}; there are {}", text, name,
                                 did_you_mean(name, known), join(known)));
}

// The three parts of a hierarchical all-reduce: reduce inside each node, all-reduce across, spread inside each node.
struct Hierarchy {
    Hierarchy(const Algorithm& algorithm, Group group)
        : inside(pattern_of(algorithm.inside)),
          across(pattern_of(algorithm.across)),
          local(group.per_node),
          nodes(group.size / group.per_node) {}
    std::int64_t reduce_rounds() const { return inside.reduce_rounds(local); }
    std::int64_t across_rounds() const { return across.rounds(nodes); }
    std::int64_t rounds() const { return inside.rounds(local) + across_rounds(); }

    void transfers(Range whole, std::int64_t round, const Sink& add) const {
        const std::int64_t after_reduce = round - reduce_rounds();
        if (after_reduce >= 0 && after_reduce < across_rounds()) return between_nodes(whole, after_reduce, add);
        within_nodes(whole, after_reduce < 0 ? round : round - across_rounds(), add);
    }

    const Pattern& inside;
    const Pattern& across;
    std::int64_t local, nodes;

private:
    void within_nodes(Range whole, std::int64_t round, const Sink& add) const {
        std::vector<Transfer> of_one_node;
        inside.transfers(local, whole, round, [&](const Transfer& t) { of_one_node.push_back(t); });
        for (std::int64_t first = 0; first < nodes * local; first += local) {
            for (const Transfer& t : of_one_node) add({first + t.from, first + t.to, t.begin, t.end, t.combine});
        }
    }
    void between_nodes(Range whole, std::int64_t round, const Sink& add) const {
        for (std::int64_t rank = 0; rank < local; ++rank) {
            const Range share = inside.owned(local, whole, rank);
            if (share.begin == share.end) continue;
            across.transfers(nodes, share, round, [&](const Transfer& t) {
                add({t.from * local + rank, t.to * local + rank, t.begin, t.end, t.combine});
            });
        }
    }
};

void add_phases(std::vector<Phase>& phases, std::int64_t first, std::int64_t count, bool alike) {
    if (count == 0) return;
    if (alike) {
        phases.push_back({first, count});
    } else {
        for (std::int64_t i = 0; i < count; ++i) phases.push_back({first + i, 1});
    }
}

// Phases of one pattern's rounds [from, to), which are rounds first, first + 1, ... of the whole.
void pattern_phases(std::vector<Phase>& phases, const Pattern& pattern, std::int64_t n, std::int64_t from,
                    std::int64_t to, std::int64_t first) {
    const std::int64_t middle = pattern.reduce_rounds == nullptr ? to : std::clamp(pattern.reduce_rounds(n), from, to);
    add_phases(phases, first, middle - from, pattern.alike);
    add_phases(phases, first + middle - from, to - middle, pattern.alike);
}

}  // namespace

std::string_view to_string(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return "allreduce";
        case CollectiveKind::reduce_scatter:
            return "reducescatter";
        case CollectiveKind::all_gather:
            return "allgather";
        case CollectiveKind::broadcast:
            return "broadcast";
        case CollectiveKind::all_to_all:
            return "alltoall";
    }
    return "?";
}

std::string to_string(const Algorithm& algorithm) {
    if (algorithm.name != hierarchical_name) return algorithm.name;
    return fmt::format("{}({},{})", algorithm.name, algorithm.inside, algorithm.across);
}

Algorithm parse_algorithm(std::string_view text) {
    const std::size_t open = text.find('(');
    if (text.substr(0, open) != hierarchical_name) {
        check_name(text, text);
        return {std::string{text}, {}, {}};
    }
    const std::size_t comma = text.find(',');
    if (open == std::string_view::npos || comma == std::string_view::npos || !text.ends_with(')')) {
        throw InputError(
            fmt::format("all-reduce '{}': write it like hierarchical(ring,halving): inside the node, "
                        "across nodes",
                        text));
    }
    const std::string_view inside = text.substr(open + 1, comma - open - 1);
    const std::string_view across = text.substr(comma + 1, text.size() - comma - 2);
    check_name(inside, text);
    check_name(across, text);
    if (pattern_of(inside).reduce_rounds == nullptr) {
        throw InputError(
            fmt::format("all-reduce '{}': {} has no reduce half that leaves shares inside the node; use "
                        "ring, halving or tree there",
                        text, inside));
    }
    return {std::string{hierarchical_name}, std::string{inside}, std::string{across}};
}

std::vector<AlgorithmName> all_reduce_algorithms() {
    std::vector<AlgorithmName> names;
    for (const Pattern& pattern : flat_patterns()) names.push_back({pattern.name, pattern.summary});
    names.push_back({"hierarchical(A,B)", "A in each node leaves each rank a share, B sums the shares across nodes"});
    return names;
}

AllReduce::AllReduce(Algorithm algorithm, Group group, std::int64_t elements)
    : algorithm_(std::move(algorithm)), group_(group), elements_(elements) {
    require(group.size >= 1 && group.per_node >= 1 && elements >= 0, "a group of ranks and a buffer");
    if (algorithm_.name == hierarchical_name && group.size % group.per_node != 0) {
        throw InputError(
            fmt::format("all-reduce {}: {} ranks do not fill nodes of {}: use a multiple of {}, or another "
                        "algorithm",
                        to_string(algorithm_), group.size, group.per_node, group.per_node));
    }
}

std::int64_t AllReduce::rounds() const {
    if (algorithm_.name == hierarchical_name) return Hierarchy{algorithm_, group_}.rounds();
    return pattern_of(algorithm_.name).rounds(group_.size);
}

std::vector<Phase> AllReduce::phases() const {
    std::vector<Phase> phases;
    if (algorithm_.name != hierarchical_name) {
        const Pattern& pattern = pattern_of(algorithm_.name);
        pattern_phases(phases, pattern, group_.size, 0, pattern.rounds(group_.size), 0);
        return phases;
    }
    const Hierarchy h{algorithm_, group_};
    const std::int64_t reduce = h.reduce_rounds();
    const std::int64_t across = h.across_rounds();
    pattern_phases(phases, h.inside, h.local, 0, reduce, 0);
    pattern_phases(phases, h.across, h.nodes, 0, across, reduce);
    pattern_phases(phases, h.inside, h.local, reduce, h.inside.rounds(h.local), reduce + across);
    return phases;
}

std::vector<Transfer> AllReduce::round(std::int64_t index) const {
    require(index >= 0 && index < rounds(), "a round of this collective");
    std::vector<Transfer> transfers;
    const Sink add = [&](const Transfer& t) {
        if (t.begin < t.end) transfers.push_back(t);
    };
    const Range whole{0, elements_};
    if (algorithm_.name == hierarchical_name) {
        Hierarchy{algorithm_, group_}.transfers(whole, index, add);
    } else {
        pattern_of(algorithm_.name).transfers(group_.size, whole, index, add);
    }
    return transfers;
}

}  // namespace rehearse
