// SPDX-License-Identifier: Apache-2.0
// Executes a collective's rounds in plain loops on the memories of all its ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/collectives/collective.hpp"

namespace rehearse::test {

inline std::int64_t initial(std::int64_t rank, std::int64_t i) { return (rank + 1) * 1000 + i * i; }

using Memory = std::vector<std::vector<std::int64_t>>;  // by rank

// What a rank that was given nothing has in its memory.
constexpr std::int64_t nothing = -7'777'777;

// Runs all rounds, every transfer reading what was there when its round began.
inline Memory executed(const Collective& collective, Memory memory) {
    for (auto& buffer : memory) buffer.resize(static_cast<std::size_t>(collective.extent()), nothing);
    for (std::int64_t round = 0; round < collective.rounds(); ++round) {
        const auto before = memory;
        for (const Transfer& t : collective.round(round)) {
            for (std::int64_t i = t.begin; i < t.end; ++i) {
                const std::int64_t sent = before.at(static_cast<std::size_t>(t.from)).at(static_cast<std::size_t>(i));
                std::int64_t& to = memory.at(static_cast<std::size_t>(t.to)).at(static_cast<std::size_t>(i + t.shift));
                to = t.combine == Combine::reduce ? to + sent : sent;
            }
        }
    }
    return memory;
}

// Every rank with data of its own.
inline Memory given(const Collective& collective) {
    Memory memory(static_cast<std::size_t>(collective.group().size));
    for (std::int64_t r = 0; r < collective.group().size; ++r) {
        for (std::int64_t i = 0; i < collective.elements(); ++i) {
            memory[static_cast<std::size_t>(r)].push_back(initial(r, i));
        }
    }
    return memory;
}

// Three rings through the four ranks of a node, one of which carries half the data and another a sixth.
inline std::shared_ptr<const std::vector<NodeRing>> unequal_rings() {
    return std::make_shared<const std::vector<NodeRing>>(
        std::vector<NodeRing>{{{0, 2, 1, 3}, 1.0 / 2}, {{0, 1, 2, 3}, 1.0 / 3}, {{0, 3, 2, 1}, 1.0 / 6}});
}

}  // namespace rehearse::test
