// SPDX-License-Identifier: Apache-2.0
// How much later each event could have ended without the end of the timeline being later, by what its steps wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "picture/critical_path.hpp"

namespace rehearse::picture {

/// Events wait for the one before them on their lane, for those that their program names (Lanes::dependencies), and a
/// new iteration for all of the one before it on its rank. Those of one flow go on together: they begin when the last
/// of them has come, and are late together; a message that has left before its receiver is there is waited for instead.
/// Each event keeps its duration.
class Slack {
public:
    /// `lanes` must outlive it.
    explicit Slack(const Lanes& lanes);
    /// ns.
    std::int64_t of(EventAt event) const { return slack_[unit_of_[node(event)]]; }
    /// From the first event to the one that ends last, through what each waited for last.
    std::vector<PathStep> path() const;

private:
    using Node = std::uint32_t;
    Node node(EventAt event) const { return first_of_[event.lane] + static_cast<Node>(event.event); }
    EventAt event(Node node) const;
    std::int64_t start(Node node) const;
    std::int64_t end(Node node) const;
    void add_lanes_and_iterations();
    void add_programs();
    void join_flows();
    void close_edges();
    void count_back();
    struct Wait {
        Node later, earlier;
    };
    std::optional<Wait> last_wait(Node of) const;

    const Lanes& lanes_;
    std::vector<Node> first_of_;  // by lane
    Node nodes_ = 0;
    std::vector<std::pair<Node, Node>> edges_;  // (later, earlier), sorted
    std::vector<std::size_t> edges_of_;         // by later node: where its edges begin
    std::vector<Node> unit_of_;                 // of several events of one flow: the first of them
    std::vector<std::int64_t> begin_, slack_;   // by unit
    std::vector<std::vector<Node>> members_;    // by unit, where there are several; empty: the unit alone
};

/// Whether `lanes` says enough for it, and is small enough to do it while somebody waits.
bool knows_slack(const Lanes& lanes);

}  // namespace rehearse::picture
