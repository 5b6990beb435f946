// SPDX-License-Identifier: Apache-2.0
// Blocks that a network repeats: what a schedule of a few of them tells of all.
#pragma once

#include "core/network.hpp"

namespace rehearse::search {

/// Layers [begin, begin + times x length) are `times` equal blocks: the same operators, each reading as many layers
/// before itself. The longest such run; times is 1 where nothing repeats.
struct Repeats {
    int begin = 0, length = 0, times = 1;
};
Repeats repeats_of(const Network& network);

/// With so many of the blocks, at least one, the first ones.
Network with_blocks(const Network& network, const Repeats& repeats, int times);

}  // namespace rehearse::search
