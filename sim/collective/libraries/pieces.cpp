// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/libraries/pieces.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

namespace {

using Protocol = LibraryProtocol;

constexpr double kibi = 1024;
constexpr double ring_chunk = 2048 * kibi;      // Simple, of which a slice is half
constexpr double tree_chunk_most = 512 * kibi;  // Simple
constexpr double tree_chunk_least = 32 * kibi;  // Simple and LL128
constexpr double ll_chunk = 32 * kibi;          // what a thread block sends at once, flags apart
constexpr double ll128_chunk_most = 576 * kibi;
constexpr std::int64_t most_blocks = 64;

// Halved while the pipeline has too few of them to fill.
double tree_chunk(double each, double depth) {
    double chunk = tree_chunk_most;
    const auto halve = [&](double times, double least) {
        while (each / chunk < depth * times && chunk > least) chunk /= 2;
    };
    halve(8, 128 * kibi);
    halve(4, 64 * kibi);
    halve(1, tree_chunk_least);
    return std::min(chunk, each);
}

// ... of LL128, whose threshold grows with the nodes.
double ll128_chunk(double each, double levels, double devices) {
    const double steps = 1 + levels + 0.1 * devices;
    double chunk = tree_chunk_most;
    while (each / chunk < steps * 64 / devices && chunk > 128 * kibi) chunk /= 2;
    while (each / chunk < steps * 16 / devices && chunk > tree_chunk_least) chunk /= 2;
    return std::min(chunk, each);
}

}  // namespace

std::int64_t thread_blocks(double bytes, std::int64_t channels, std::int64_t ranks, LibraryAlgorithm algorithm,
                           Protocol q) {
    std::int64_t blocks = std::min(2 * channels, most_blocks);
    const double threads = q == Protocol::ll128 ? 640 : 512;
    double threshold = q == Protocol::simple ? 64 : 8;  // bytes a thread
    if (q == Protocol::ll && algorithm == LibraryAlgorithm::ring) threshold *= static_cast<double>(ranks);
    while (blocks > 1 && bytes < static_cast<double>(blocks) * threads * threshold) --blocks;
    return blocks;
}

double on_wire(Protocol q) { return q == Protocol::ll ? 2 : q == Protocol::ll128 ? 128.0 / 120 : 1; }

RingPieces ring_pieces(double each, Protocol q) {
    const double most = q == Protocol::simple ? ring_chunk : q == Protocol::ll ? ll_chunk : ll128_chunk_most;
    // LL's chunks are so small that each turn waits for the one before; larger ones overlap.
    const double loops = q == Protocol::ll ? std::max(1.0, std::ceil(each / most)) : 1;
    const double chunk = std::min(each / loops, most);
    const double slice = q == Protocol::simple ? chunk / 2 : chunk;
    return {loops, slice, slice * on_wire(q)};
}

double tree_piece(double each, Protocol q, double levels, double devices) {
    if (q == Protocol::simple) return tree_chunk(each, devices - 1 + levels);
    if (q == Protocol::ll128) return ll128_chunk(each, levels, devices);
    return std::min(each, ll_chunk);
}

// A thread block has so many slots for pieces to the same peer (src/include/device.h, NCCL_STEPS). One is free again
// when a message has gone across, and its request, what clears it and what says that it is there: four steps.
double paced(double pieces, double step) {
    constexpr double slots = 8, round_trips = 4;
    return std::max(pieces - 1, 0.0) * round_trips * step / slots;
}

double nvls_loop(double bytes, double channels, double heads, bool several_nodes) {
    const double at_once = channels * heads;
    double chunk = (several_nodes ? 256 : 128) * kibi;
    const auto cut = [&](double times, double to) {
        if (bytes < times * at_once * chunk && chunk > to * kibi) chunk = to * kibi;
    };
    if (several_nodes) {
        cut(16, 128);
        cut(4, 64);
        cut(1, 32);
    } else {
        cut(64, 64);
        cut(8, 32);
        cut(2, 16);
    }
    return std::min(bytes, at_once * chunk);
}

double tree_message(double chunk, Protocol q) { return std::min(chunk, tree_chunk_least) * on_wire(q); }

}  // namespace rehearse::sim
