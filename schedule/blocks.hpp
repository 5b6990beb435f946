// SPDX-License-Identifier: Apache-2.0
// The blocks that a network repeats: what activation checkpoints lie between, and what stages are counted in.
#pragma once

#include <vector>

#include "core/schedule.hpp"
#include "schedule/axes/stages.hpp"

namespace rehearse::schedule {

/// Layers [begin, end), cut wherever a single tensor goes on and another Layer::block begins; between layers of no
/// block, wherever a single tensor goes on.
std::vector<Chunk> segments(const Network& network, Chunk within);

/// Of these the blocks of a residual network: those that add a shortcut to what it went around. Empty where there are
/// none.
bool is_block(const Network& network, Chunk segment);

/// Where each of `pieces` pieces of a part ends, each with as many blocks as the others, what comes before and after
/// the blocks with the first and the last: Megatron-LM's stages. InputError when blocks cannot be dealt out evenly.
std::vector<int> even_blocks(const Network& network, int pieces);

}  // namespace rehearse::schedule
