// SPDX-License-Identifier: Apache-2.0
#include "core/collectives/between_nodes.hpp"

#include <algorithm>
#include <bit>

namespace rehearse {

namespace {

/// Rounds between nodes in which every rank sends one message, and those of its node beside it.
class RoundTimes {
public:
    RoundTimes(const Machine& machine, std::int64_t lanes)
        : across_(machine.across),
          card_(machine.fabric.link.value * machine.across.fraction.value),
          latency_(machine.fabric.latency.value) {
        const auto cards = std::ranges::count(machine.nodes.front().vertices, VertexKind::nic, &Vertex::kind);
        lanes_of_card_ = std::max(1.0, static_cast<double>(lanes) / std::max(1.0, static_cast<double>(cards)));
    }

    bool known() const { return card_ > Bandwidth{}; }

    /// Of a round that adds what arrives, and one that copies as much.
    Seconds both(Bytes each) const {
        const Seconds alone = each / card_;
        const Seconds overhead = across_.pieces.empty() ? across_.overhead.value : beyond_wire(across_, each, alone);
        const Bandwidth adds = across_.reduce.value;
        return 2.0 * (latency_ + overhead + alone * lanes_of_card_) + (adds > Bandwidth{} ? each / adds : Seconds{});
    }

private:
    const Messaging& across_;
    Bandwidth card_;
    Seconds latency_;
    double lanes_of_card_ = 1;
};

}  // namespace

std::string usual_between_nodes(const Machine& machine, std::int64_t nodes, std::int64_t lanes, Bytes whole) {
    const auto n = static_cast<std::uint64_t>(nodes);
    if (std::has_single_bit(n)) return "halving";
    const RoundTimes rounds{machine, lanes};
    if (!rounds.known()) return "ring";
    const Bytes share = whole / static_cast<double>(lanes);
    const Seconds ring = static_cast<double>(nodes - 1) * rounds.both(share / static_cast<double>(nodes));
    Seconds halving = rounds.both(share);
    for (std::uint64_t parts = 2; parts <= n; parts *= 2) halving += rounds.both(share / static_cast<double>(parts));
    return halving < ring ? "halving" : "ring";
}

}  // namespace rehearse
