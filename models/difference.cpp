// SPDX-License-Identifier: Apache-2.0
#include "models/difference.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace rehearse::models {
namespace {

// Layers that compute, and a number for each operator, the same in both networks.
struct Sequence {
    std::vector<int> layers, operators;
};

Sequence sequence_of(const Network& network, std::map<std::string, int>& numbers) {
    Sequence made;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const Op& op = network.layers[i].op;
        if (std::holds_alternative<Flatten>(op)) continue;
        made.layers.push_back(static_cast<int>(i));
        made.operators.push_back(numbers.emplace(to_string(op), static_cast<int>(numbers.size())).first->second);
    }
    return made;
}

// Of what lies between two pairs of the same operator: layers of one kind, in their order.
void match_kinds(const Network& a, const Network& b, std::vector<int> left, std::vector<int> right,
                 std::vector<Match>& all) {
    std::size_t next = 0;
    for (const int i : left) {
        const auto kind = kind_of(a.layers[static_cast<std::size_t>(i)].op);
        std::size_t found = next;
        while (found < right.size() && kind_of(b.layers[static_cast<std::size_t>(right[found])].op) != kind) ++found;
        if (found == right.size()) {
            all.push_back({i, -1});
            continue;
        }
        for (; next < found; ++next) all.push_back({-1, right[next]});
        all.push_back({i, right[next++]});
    }
    for (; next < right.size(); ++next) all.push_back({-1, right[next]});
}

}  // namespace

std::vector<Match> matched(const Network& a, const Network& b) {
    std::map<std::string, int> numbers;
    const Sequence left = sequence_of(a, numbers), right = sequence_of(b, numbers);
    const std::size_t m = left.layers.size(), n = right.layers.size();
    std::vector<Match> all;
    constexpr std::size_t most = std::size_t{1} << 28;  // numbers of the table below: a gigabyte
    if ((m + 1) * (n + 1) > most) {
        match_kinds(a, b, left.layers, right.layers, all);
        return all;
    }
    // longest[i][j]: of what is left after i and j layers.
    std::vector<std::uint32_t> longest((m + 1) * (n + 1));
    const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return longest[i * (n + 1) + j]; };
    for (std::size_t i = m; i-- > 0;) {
        for (std::size_t j = n; j-- > 0;) {
            at(i, j) =
                left.operators[i] == right.operators[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
        }
    }
    std::vector<int> only_left, only_right;
    const auto flush = [&] { match_kinds(a, b, std::exchange(only_left, {}), std::exchange(only_right, {}), all); };
    std::size_t i = 0, j = 0;
    while (i < m || j < n) {
        if (i < m && j < n && left.operators[i] == right.operators[j]) {
            flush();
            all.push_back({left.layers[i++], right.layers[j++]});
        } else if (j == n || (i < m && at(i + 1, j) >= at(i, j + 1))) {
            only_left.push_back(left.layers[i++]);
        } else {
            only_right.push_back(right.layers[j++]);
        }
    }
    flush();
    return all;
}

bool alike(const Network& a, const Network& b, const Match& match) {
    return match.a >= 0 && match.b >= 0 &&
           to_string(a.layers[static_cast<std::size_t>(match.a)].op) ==
               to_string(b.layers[static_cast<std::size_t>(match.b)].op);
}

}  // namespace rehearse::models
