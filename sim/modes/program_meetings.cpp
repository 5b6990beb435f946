// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/program_meetings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/quoting.hpp"

namespace rehearse::sim {

namespace {

using Kind = ProgramNode::Kind;

class Matcher {
public:
    explicit Matcher(const RankPrograms& programs) : programs_(programs) {
        for (const std::vector<ProgramNode>& nodes : programs.ranks) {
            result_.of_node.emplace_back(nodes.size(), Meetings::none);
            std::vector<std::vector<int>>& waits = result_.waits.emplace_back();
            for (const ProgramNode& node : nodes) waits.push_back(node.after);
        }
    }

    Meetings made() {
        collect();
        for (std::size_t group = 0; group < collectives_.size(); ++group) match_group(group);
        for (const auto& [key, messages] : messages_) match_messages(key, messages);
        check_order();
        return std::move(result_);
    }

private:
    using Key = std::tuple<RankIndex, RankIndex, std::int64_t>;  // sender, receiver, tag
    struct Messages {
        std::vector<int> sends, receives;  // nodes
    };

    void collect() {
        collectives_.resize(programs_.groups.size());
        for (std::size_t group = 0; group < programs_.groups.size(); ++group)
            collectives_[group].resize(programs_.groups[group].size());
        for (RankIndex rank{0}; rank < std::ssize(programs_.ranks); ++rank) {
            const std::vector<ProgramNode>& nodes = programs_.ranks[at(rank)];
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                const ProgramNode& node = nodes[i];
                const int index = static_cast<int>(i);
                if (node.kind == Kind::send) {
                    messages_[{rank, node.peer, node.tag}].sends.push_back(index);
                } else if (node.kind == Kind::receive) {
                    messages_[{node.peer, rank, node.tag}].receives.push_back(index);
                } else if (node.kind == Kind::collective) {
                    const auto group = at(node.group);
                    const std::vector<RankIndex>& members = programs_.groups.at(group);
                    const auto member = std::ranges::find(members, rank);
                    require(member != members.end(), "a rank takes part in collectives of its own groups");
                    collectives_[group][at(member - members.begin())].push_back(index);
                }
            }
        }
    }

    const ProgramNode& node(NodePlace place) const { return programs_.ranks[at(place.rank)][at(place.node)]; }
    std::string text(NodePlace place) const {
        return fmt::format("'{}' of rank {}", printable(node(place).name), place.rank);
    }

    // The nodes at the same place of these lists meet; places[k] is of lists[k].
    void match(const std::vector<RankIndex>& ranks, const std::vector<const std::vector<int>*>& lists) {
        const int channel = channels_++;
        for (std::size_t i = 0; i < lists.front()->size(); ++i) {
            Rendezvous& meeting = result_.all.emplace_back();
            meeting.channel = channel;
            for (std::size_t k = 0; k < ranks.size(); ++k) {
                const int node = (*lists[k])[i];
                meeting.places.push_back({ranks[k], node});
                const auto rank = at(ranks[k]);
                result_.of_node[rank][at(node)] = static_cast<int>(result_.all.size()) - 1;
                if (i == 0) continue;
                std::vector<int>& waits = result_.waits[rank][at(node)];
                const int before = (*lists[k])[i - 1];
                if (std::ranges::find(waits, before) == waits.end()) waits.push_back(before);
            }
        }
    }

    void match_group(std::size_t group) {
        const std::vector<RankIndex>& members = programs_.groups[group];
        const std::vector<std::vector<int>>& nodes = collectives_[group];
        if (members.empty()) return;
        for (std::size_t k = 1; k < members.size(); ++k) {
            for (std::size_t i = 0; i < std::max(nodes[0].size(), nodes[k].size()); ++i) {
                if (i >= nodes[k].size()) refuse_alone({members[0], nodes[0][i]}, members[k]);
                if (i >= nodes[0].size()) refuse_alone({members[k], nodes[k][i]}, members[0]);
                const NodePlace one{members[0], nodes[0][i]}, other{members[k], nodes[k][i]};
                const ProgramNode &a = node(one), &b = node(other);
                if (a.collective == b.collective && a.bytes == b.bytes && a.root != b.root) refuse_roots(one, other);
                if (a.collective == b.collective && a.bytes == b.bytes) continue;
                throw InputError(
                    fmt::format("{} is {} of {:.0f} bytes, its counterpart {} {} of {:.0f}: all ranks of "
                                "a group call the same collectives in the same order",
                                text(one), to_string(a.collective), a.bytes.value, text(other), to_string(b.collective),
                                b.bytes.value));
            }
        }
        std::vector<const std::vector<int>*> lists;
        for (const std::vector<int>& each : nodes) lists.push_back(&each);
        match(members, lists);
    }

    [[noreturn]] void refuse_roots(NodePlace one, NodePlace other) const {
        const std::vector<RankIndex>& members = programs_.groups[at(node(one).group)];
        throw InputError(fmt::format("{} is a broadcast from rank {}, its counterpart {} one from rank {}", text(one),
                                     members[at(node(one).root)], text(other), members[at(node(other).root)]));
    }

    [[noreturn]] void refuse_alone(NodePlace place, RankIndex other) const {
        throw InputError(fmt::format("{} has no counterpart on rank {}, which is in its group", text(place), other));
    }

    void match_messages(const Key& key, const Messages& messages) {
        const auto [from, to, tag] = key;
        const auto& [sends, receives] = messages;
        for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
            if (i >= receives.size())
                throw InputError(fmt::format("{}, a message to rank {} with tag {}, has no receive there",
                                             text({from, sends[i]}), to, tag));
            if (i >= sends.size())
                throw InputError(fmt::format("{}, a receive from rank {} with tag {}, has no send there",
                                             text({to, receives[i]}), from, tag));
            const NodePlace send{from, sends[i]}, receive{to, receives[i]};
            if (node(send).bytes == node(receive).bytes) continue;
            throw InputError(fmt::format("{} sends {:.0f} bytes, {} receives {:.0f}", text(send),
                                         node(send).bytes.value, text(receive), node(receive).bytes.value));
        }
        match({from, to}, {&sends, &receives});
    }

    // Takes every node as soon as what it waits for is over, and a meeting when all of it could be.
    void check_order() {
        std::vector<std::vector<int>> open;
        std::vector<std::vector<std::vector<int>>> after;  // by rank and node: those that wait for it
        std::vector<NodePlace> ready;
        std::int64_t left = 0;
        for (std::size_t rank = 0; rank < result_.waits.size(); ++rank) {
            const auto& waits = result_.waits[rank];
            after.emplace_back(waits.size());
            std::vector<int>& counts = open.emplace_back();
            left += std::ssize(waits);
            for (std::size_t i = 0; i < waits.size(); ++i) {
                counts.push_back(static_cast<int>(waits[i].size()));
                for (const int before : waits[i]) after[rank][at(before)].push_back(static_cast<int>(i));
                if (waits[i].empty()) ready.push_back({RankIndex{rank}, static_cast<int>(i)});
            }
        }
        std::vector<std::size_t> come(result_.all.size());
        const auto over = [&](NodePlace place) {
            --left;
            const auto rank = at(place.rank);
            for (const int next : after[rank][at(place.node)])
                if (--open[rank][at(next)] == 0) ready.push_back({place.rank, next});
        };
        while (!ready.empty()) {
            const NodePlace place = ready.back();
            ready.pop_back();
            const int meeting = result_.of_node[at(place.rank)][at(place.node)];
            if (meeting == Meetings::none) {
                over(place);
                continue;
            }
            const Rendezvous& of = result_.all[at(meeting)];
            if (++come[at(meeting)] < of.places.size()) continue;
            for (const NodePlace& each : of.places) over(each);
        }
        if (left > 0) refuse_circle(come, open);
    }

    [[noreturn]] void refuse_circle(const std::vector<std::size_t>& come,
                                    const std::vector<std::vector<int>>& open) const {
        for (std::size_t i = 0; i < come.size(); ++i) {
            const Rendezvous& of = result_.all[i];
            if (come[i] == 0 || come[i] == of.places.size()) continue;
            const auto is_ready = [&](const NodePlace& place) { return open[at(place.rank)][at(place.node)] == 0; };
            const auto one = std::ranges::find_if(of.places, is_ready);
            const auto other = std::ranges::find_if_not(of.places, is_ready);
            throw InputError(
                fmt::format("{} waits for ever for {}, which waits for it, by way of others: the ranks' "
                            "messages and collectives come in orders that cannot meet",
                            text(*one), text(*other)));
        }
        throw InputError("the ranks' messages and collectives come in orders that cannot meet");
    }

    const RankPrograms& programs_;
    Meetings result_;
    std::vector<std::vector<std::vector<int>>> collectives_;  // by group and member: nodes
    std::map<Key, Messages> messages_;
    int channels_ = 0;
};

}  // namespace

Meetings meetings_of(const RankPrograms& programs) { return Matcher{programs}.made(); }

}  // namespace rehearse::sim
