// SPDX-License-Identifier: Apache-2.0
// What switches are to each other: leaves with hosts, spines above them, cores above these, and groups of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/ibnet_text.hpp"

namespace rehearse::models::ibnet {

using Names = std::vector<std::string>;

/// Sets of switches that are joined with each other, by links that `counts` lets through.
template <typename Counts>
std::vector<std::set<std::string>> components(const Text& text, const Counts& counts) {
    std::vector<std::set<std::string>> found;
    std::set<std::string> seen;
    for (const auto& [name, ignored] : text.switches) {
        if (seen.contains(name)) continue;
        Names open{name};
        std::set<std::string> all{name};
        while (!open.empty()) {
            const std::string at = open.back();
            open.pop_back();
            for (const auto& [other, trunk] : text.switches.at(at).others) {
                if (text.switches.contains(other) && counts(at, other) && all.insert(other).second)
                    open.push_back(other);
            }
        }
        seen.insert(all.begin(), all.end());
        found.push_back(std::move(all));
    }
    return found;
}

/// Switches as the roles that they have: a leaf has hosts, a spine is joined to a leaf, a core is neither.
class Roles {
public:
    explicit Roles(const Text& text) : text_(text) {
        for (const auto& [name, each] : text.switches) {
            if (!each.cards.empty()) leaves_.push_back(name);
        }
        groups_ = components(text, [&](const std::string& a, const std::string& b) { return leaf(a) != leaf(b); });
        // A switch that no leaf is joined to stands alone.
        std::erase_if(groups_, [&](const auto& group) {
            return std::ranges::none_of(group, [&](const auto& s) { return leaf(s); });
        });
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            for (const std::string& name : groups_[g]) group_[name] = static_cast<std::int64_t>(g);
        }
    }
    bool leaf(const std::string& name) const { return !text_.switches.at(name).cards.empty(); }
    const Names& leaves() const { return leaves_; }
    std::int64_t groups() const { return std::ssize(groups_); }
    std::int64_t leaves_of_a_group() const { return (std::ssize(leaves_) + groups() - 1) / groups(); }
    /// -1: a core.
    std::int64_t group(const std::string& name) const {
        const auto found = group_.find(name);
        return found == group_.end() ? -1 : found->second;
    }

private:
    const Text& text_;
    Names leaves_;
    std::vector<std::set<std::string>> groups_;
    std::map<std::string, std::int64_t> group_;
};

/// Ports of hosts at the switch that has most of them.
inline std::int64_t most_cards(const Text& text) {
    std::size_t most = 0;
    for (const auto& [name, each] : text.switches) most = std::max(most, each.cards.size());
    return static_cast<std::int64_t>(most);
}

/// What goes down over what goes up from the switches for which `below` and `above` say what links carry.
template <typename Below, typename Above>
double taper(const Text& text, const Below& below, const Above& above) {
    double down = 0, up = 0;
    for (const auto& [name, each] : text.switches) {
        down += below(name, each);
        up += above(name, each);
    }
    return up > 0 ? std::max(1.0, std::round(100 * down / up) / 100) : 1;
}

}  // namespace rehearse::models::ibnet
