// SPDX-License-Identifier: Apache-2.0
// What one rank sends, receives and adds in each round of a collective. Made once a (collective, rank), so that a
// training step neither searches nor allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "core/collectives/collective.hpp"

namespace rehearse::kernels {

struct RankProgram {
    struct Piece {
        std::int64_t begin = 0, count = 0;  // elements of the rank's memory
    };
    /// The pieces one after the other; where the other end has as many elements in other pieces.
    struct Message {
        std::int64_t peer = 0, count = 0;
        std::vector<Piece> pieces;
        bool add = false;  // of what is received: added to the pieces, not copied over them
    };
    struct Move {
        std::int64_t from = 0, to = 0, count = 0;
        Combine what = Combine::copy;  // or Adasum's, of the vectors at `from` and `to`
    };
    struct Round {
        std::vector<Move> moves;  // within the rank's memory
        std::vector<Message> sends, receives;
        bool overlaps = false;  // it receives where it sends from: what is sent must be put aside first
    };

    RankProgram() = default;
    /// Of `rank` in the collective's group. Rounds without this rank are left out.
    RankProgram(const Collective& collective, std::int64_t rank);
    /// A message of `count` elements to or from `peer`, who has the other end of it.
    static RankProgram message(std::int64_t peer, bool sends, std::int64_t count);

    std::int64_t ranks = 1;
    std::int64_t elements = 0;  // of the data
    std::int64_t slots = 0;  // elements that an all-to-all receives into or Adasum needs, numbered from `elements` on
    std::vector<Round> rounds;
};

}  // namespace rehearse::kernels
