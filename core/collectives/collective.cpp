// SPDX-License-Identifier: Apache-2.0
#include "core/collectives/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/collectives/library.hpp"
#include "core/collectives/patterns.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse {

namespace {

constexpr std::string_view hierarchical_name = "hierarchical";
constexpr std::string_view torus_name = "torus";
constexpr std::string_view adasum_name = "adasum";

std::span<const Pattern> patterns_of(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return all_reduce_patterns();
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
            return half_patterns();
        case CollectiveKind::broadcast:
            return broadcast_patterns();
        case CollectiveKind::all_to_all:
            return all_to_all_patterns();
        case CollectiveKind::halo:
            return halo_patterns();
    }
    return {};
}

std::string_view first_word(std::string_view name) { return name.substr(0, name.find('(')); }

const Pattern* find_pattern(CollectiveKind kind, std::string_view name) {
    const std::span<const Pattern> all = patterns_of(kind);
    const auto found =
        std::ranges::find_if(all, [&](const Pattern& p) { return p.kind == kind && first_word(p.name) == name; });
    return found == all.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(CollectiveKind kind, std::string_view text, std::string_view why) {
    throw InputError(fmt::format("{} '{}': {}", to_string(kind), text, why));
}

void check_name(CollectiveKind kind, std::string_view name, std::string_view text, bool brackets) {
    if (find_pattern(kind, name) != nullptr && (brackets || name != hierarchical_name)) return;
    std::vector<std::string_view> known;
    for (const AlgorithmName& each : algorithms(kind)) {
        if (name == text || !each.name.starts_with(hierarchical_name)) known.push_back(first_word(each.name));
    }
    refuse(kind, text,
           fmt::format("unknown algorithm '{}'{}; there are {}", name, did_you_mean(name, known), join(known)));
}

Algorithm parse_hierarchical(CollectiveKind kind, std::string_view text, std::string_view inside,
                             std::string_view across) {
    for (const std::string_view part : {inside, across}) {
        check_name(kind, part, text, false);
        const bool flat = halves_of(part, {2, 2}, {0, 2}).has_value() || part == "doubling" || part == "direct";
        if (!flat) {
            refuse(kind, text,
                   fmt::format("{} cannot be a part of it; use ring, doubling, halving, tree or direct", part));
        }
    }
    if (!halves_of(inside, {2, 2}, {0, 2})) {
        refuse(kind, text,
               fmt::format("{} has no reduce half that leaves shares inside the node; use ring, halving or tree there",
                           inside));
    }
    return {.name = std::string{hierarchical_name}, .inside = std::string{inside}, .across = std::string{across}};
}

// "nccl", or "nccl(tree,simple)" with what it must take; "any" leaves one of them open.
Algorithm parse_library(CollectiveKind kind, std::string_view text) {
    Algorithm library{.name = std::string{first_word(text)}};
    if (text == library.name) return library;
    const std::size_t open = text.find('('), comma = text.find(',');
    if (open == std::string_view::npos || comma == std::string_view::npos || !text.ends_with(')'))
        refuse(kind, text, "write it like nccl, or nccl(tree,simple): the algorithm and protocol that it must take");
    const auto one_of = [&](std::string_view word, std::span<const std::string_view> known) {
        if (std::ranges::find(known, word) == known.end())
            refuse(kind, text, fmt::format("'{}' is none of {}{}", word, join(known), did_you_mean(word, known)));
        return word == "any" ? std::string{} : std::string{word};
    };
    library.inside = one_of(text.substr(open + 1, comma - open - 1), library_algorithm_words);
    library.across = one_of(text.substr(comma + 1, text.size() - comma - 2), library_protocol_words);
    return library;
}

}  // namespace

std::string_view to_string(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return "all-reduce";
        case CollectiveKind::reduce_scatter:
            return "reduce-scatter";
        case CollectiveKind::all_gather:
            return "all-gather";
        case CollectiveKind::broadcast:
            return "broadcast";
        case CollectiveKind::all_to_all:
            return "all-to-all";
        case CollectiveKind::halo:
            return "halo exchange";
    }
    return "?";
}

std::string_view pass_of(CollectiveKind kind) {
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
        case CollectiveKind::halo:
            return "halo";
    }
    return "?";
}

std::vector<CollectiveKind> collective_kinds() {
    using enum CollectiveKind;
    return {all_reduce, reduce_scatter, all_gather, broadcast, all_to_all};
}

std::string to_string(const Algorithm& algorithm) {
    if (algorithm.name == hierarchical_name) {
        return fmt::format("{}({},{})", algorithm.name, algorithm.inside, algorithm.across);
    }
    if (of_library(algorithm) && !(algorithm.inside.empty() && algorithm.across.empty())) {
        const auto or_any = [](const std::string& word) { return word.empty() ? "any" : word; };
        return fmt::format("{}({},{})", algorithm.name, or_any(algorithm.inside), or_any(algorithm.across));
    }
    if (const Halo& h = algorithm.halo; h != Halo{}) {
        return fmt::format("{}({},{},{},{})", algorithm.name, h.own, h.size, h.step, h.before);
    }
    if (algorithm.rows > 0) return fmt::format("{}({}x{})", algorithm.name, algorithm.rows, algorithm.columns);
    return algorithm.name;
}

Algorithm parse_algorithm(std::string_view text, CollectiveKind kind) {
    const std::size_t open = text.find('(');
    const std::string_view name = text.substr(0, open);
    check_name(kind, name, open == std::string_view::npos ? text : name, true);
    if (of_library(name)) return parse_library(kind, text);
    const bool two_parts = name == hierarchical_name;
    if (open == std::string_view::npos && !two_parts) return {.name = std::string{name}};
    const std::size_t middle = text.find(two_parts ? ',' : 'x', std::min(open, text.size()));
    if (!two_parts && name != torus_name) refuse(kind, text, fmt::format("{} takes nothing in brackets", name));
    if (open == std::string_view::npos || middle == std::string_view::npos || !text.ends_with(')')) {
        refuse(kind, text,
               two_parts ? "write it like hierarchical(ring,halving): inside the node, across nodes"
                         : "write it like torus(4x6): rows, columns");
    }
    const std::string_view first = text.substr(open + 1, middle - open - 1);
    const std::string_view second = text.substr(middle + 1, text.size() - middle - 2);
    if (two_parts) return parse_hierarchical(kind, text, first, second);
    Algorithm torus{.name = std::string{torus_name}};
    torus.rows = parse_int(first, fmt::format("rows of {}", text));
    torus.columns = parse_int(second, fmt::format("columns of {}", text));
    if (torus.rows < 1 || torus.columns < 1) refuse(kind, text, "rows and columns are 1 or more");
    return torus;
}

std::vector<AlgorithmName> algorithms(CollectiveKind kind) {
    std::vector<AlgorithmName> names;
    for (const Pattern& pattern : patterns_of(kind)) {
        if (pattern.kind == kind && pattern.name != adasum_name && !of_library(pattern.name))
            names.push_back({pattern.name, pattern.summary});
    }
    return names;
}

std::pair<std::int64_t, std::int64_t> torus_sides(const Algorithm& algorithm, std::int64_t n) {
    if (algorithm.rows > 0) return {algorithm.rows, algorithm.columns};
    std::int64_t rows = 1;
    for (std::int64_t r = 1; r * r <= n; ++r) {
        if (n % r == 0) rows = r;
    }
    return {rows, n / rows};
}

Collective::Collective(CollectiveKind kind, Algorithm algorithm, Group group, std::int64_t elements, std::int64_t root)
    : kind_(kind), algorithm_(std::move(algorithm)), group_(group), elements_(elements), root_(root) {
    require(group.size >= 1 && group.per_node >= 1 && elements >= 0, "a group of ranks and a buffer");
    require(root >= 0 && root < group.size, "a root that is in the group");
    const Pattern* pattern = find_pattern(kind, algorithm_.name);
    require(pattern != nullptr, "an algorithm that parse_algorithm accepted");
    if (algorithm_.name == hierarchical_name && group.size % group.per_node != 0) {
        throw InputError(
            fmt::format("all-reduce {}: {} ranks do not fill nodes of {}: use a multiple of {}, or another "
                        "algorithm",
                        to_string(algorithm_), group.size, group.per_node, group.per_node));
    }
    const auto [rows, columns] = torus_sides(algorithm_, group.size);
    if (algorithm_.name == torus_name && rows * columns != group.size) {
        throw InputError(
            fmt::format("all-reduce {}: {} ranks are not {} rows of {}: choose sides whose product is {}, "
                        "or write torus alone",
                        to_string(algorithm_), group.size, rows, columns, group.size));
    }
    rounds_ = std::make_shared<const Rounds>(pattern->rounds({algorithm_, group, {0, elements}, root, slot()}));
}

std::int64_t Collective::rounds() const { return rounds_->count(); }
const std::vector<Phase>& Collective::phases() const { return rounds_->phases; }

std::vector<Transfer> Collective::round(std::int64_t index) const {
    require(index >= 0 && index < rounds(), "a round of this collective");
    std::vector<Transfer> transfers;
    rounds_->transfers(index, [&](const Transfer& t) {
        if (t.begin < t.end || t.combine == Combine::dots) transfers.push_back(t);  // products of nothing are 0
    });
    return transfers;
}

std::vector<Message> Collective::messages(std::int64_t index) const {
    require(index >= 0 && index < rounds(), "a round of this collective");
    std::vector<Message> messages;
    rounds_->transfers(index, [&](const Transfer& t) {
        if (t.begin >= t.end || t.from == t.to) return;
        if (!messages.empty() && messages.back().from == t.from && messages.back().to == t.to) {
            messages.back().elements += t.end - t.begin;
        } else {
            messages.push_back({t.from, t.to, t.end - t.begin, t.combine});
        }
    });
    return messages;
}

Range Collective::chunk(std::int64_t rank) const { return rehearse::chunk(group_.size, {0, elements_}, rank); }
std::int64_t Collective::slot() const { return (elements_ + group_.size - 1) / group_.size; }
std::int64_t Collective::extent() const {
    if (!is_sum(algorithm_)) return elements_ + adasum_room(group_.size, elements_);
    return elements_ + (kind_ == CollectiveKind::all_to_all ? group_.size * slot() : 0);
}

}  // namespace rehearse
