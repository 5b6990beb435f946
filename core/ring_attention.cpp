// SPDX-License-Identifier: Apache-2.0
#include "core/ring_attention.hpp"

namespace rehearse {

std::int64_t ring_of(const Schedule& schedule, const Part& part, int layer) {
    const auto* own = std::get_if<Attention>(&part.network.layers[at(layer)].op);
    if (own == nullptr || !schedule.methods.get<RingAttention>().on) return 1;
    const int origin = part.origins[at(layer)].layer;
    if (origin < 0) return 1;
    return std::get<Attention>(schedule.network.layers[at(origin)].op).keys / own->keys;
}

std::vector<RingTurn> ring_turns(Pass pass, std::int64_t ranks) {
    using enum RingTurn::What;
    std::vector<RingTurn> turns;
    const auto n = static_cast<int>(ranks);
    for (int turn = 0; turn < n; ++turn) {
        if (turn + 1 < n) turns.push_back({keys, turn + 1});
        if (pass != Pass::forward && turn > 0) turns.push_back({gradients, turn});
        turns.push_back({attend, turn});
    }
    if (pass != Pass::forward) turns.push_back({gradients, n});
    return turns;
}

std::int64_t ring_block(const Attention& op) { return op.keys * (key_width(op) + value_width(op)); }

std::string_view pass_of(const Communicate& communicate) {
    return communicate.algorithm.name.starts_with(shift_first) ? shift_first : pass_of(communicate.kind);
}

}  // namespace rehearse
