// SPDX-License-Identifier: Apache-2.0
#include "schedule/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::schedule {

namespace {

bool same_block(const Layer& a, const Layer& b) { return a.block >= 0 && a.block == b.block; }

/// For each layer, whether a single tensor goes from the layers before it to it and those after it.
std::vector<bool> narrow_before(const Network& network, Chunk within) {
    std::vector<int> last_reader(network.layers.size(), -1);
    for (int i = within.begin; i < within.end; ++i) {
        for (const int input : network.layers[at(i)].inputs) last_reader[at(input)] = i;
    }
    std::vector<bool> narrow(network.layers.size());
    std::vector<int> open;  // layers whose output is still to be read
    for (int i = within.begin; i < within.end; ++i) {
        std::erase_if(open, [&](int made) { return last_reader[at(made)] < i; });
        narrow[at(i)] = open.size() == 1;
        if (last_reader[at(i)] > i) open.push_back(i);
    }
    return narrow;
}

}  // namespace

std::vector<Chunk> segments(const Network& network, Chunk within) {
    const std::vector<bool> narrow = narrow_before(network, within);
    std::vector<Chunk> found;
    int begin = within.begin;
    for (int i = within.begin + 1; i < within.end; ++i) {
        if (!narrow[at(i)] || same_block(network.layers[at(i)], network.layers[at(i - 1)])) continue;
        found.push_back({begin, i});
        begin = i;
    }
    if (begin < within.end) found.push_back({begin, within.end});
    return found;
}

bool is_block(const Network& network, Chunk segment) {
    for (int i = segment.begin; i < segment.end; ++i) {
        if (std::holds_alternative<Add>(network.layers[at(i)].op)) return true;
    }
    return false;
}

std::vector<int> even_blocks(const Network& network, int pieces) {
    std::vector<Chunk> blocks = segments(network, {0, static_cast<int>(network.layers.size())});
    std::erase_if(blocks, [&](const Chunk& segment) { return !is_block(network, segment); });
    const auto count = static_cast<int>(blocks.size());
    if (count == 0 || count % pieces != 0) {
        throw InputError(
            fmt::format("{} blocks cannot be dealt out to {} stages evenly: leave out cut=blocks", count, pieces));
    }
    std::vector<int> ends;
    for (int piece = 1; piece < pieces; ++piece) ends.push_back(blocks[at(piece * count / pieces - 1)].end);
    ends.push_back(static_cast<int>(network.layers.size()));
    return ends;
}

}  // namespace rehearse::schedule
