// SPDX-License-Identifier: Apache-2.0
// Into what pieces NCCL cuts the data of a collective (src/enqueue.cc, src/include/device.h). Bytes.
#pragma once

#include <cstdint>

#include "core/collectives/library.hpp"

namespace rehearse::sim {

/// Thread blocks that work on `bytes`: twice the channels, less while each has too little to do.
std::int64_t thread_blocks(double bytes, std::int64_t channels, std::int64_t ranks, LibraryAlgorithm algorithm,
                           LibraryProtocol protocol);

/// Bytes of data that the threads of a block pass on at once by LL.
inline constexpr double ll_lines = 512 * 8;

/// Bytes on the wire for one of data: LL has 4 bytes of flag for 4 of data, LL128 8 for 120.
double on_wire(LibraryProtocol protocol);

/// How a thread block cuts its share of a ring's data.
struct RingPieces {
    double loops = 1;    // turns round the ring, each of which waits for the one before
    double slice = 0;    // of data, that goes to the next rank at once
    double message = 0;  // the same on the wire
};
/// `each`: bytes of a thread block for one rank.
RingPieces ring_pieces(double each, LibraryProtocol protocol);

/// The chunk that goes up or down a tree at once; `each`: bytes of a thread block. `levels`: of the tree between
/// nodes; `devices`: on a node.
double tree_piece(double each, LibraryProtocol protocol, double levels, double devices);

/// Of a tree's chunk, what the next step can begin with; bytes.
double tree_message(double chunk, LibraryProtocol protocol);

/// us at least that so many pieces of a thread block to a peer on another node take, `step` us on their way.
double paced(double pieces, double step);

/// What the switches of a node sum at once, all channels and heads together; `heads`: devices that send for others.
double nvls_loop(double bytes, double channels, double heads, bool several_nodes);

}  // namespace rehearse::sim
