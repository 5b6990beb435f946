// SPDX-License-Identifier: Apache-2.0
// A pass of a convolution as launches whose terms are taps of eight channels.
#pragma once

#include <initializer_list>
#include <vector>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/lowering.hpp"

namespace rehearse::kernels::cuda {

/// A pass's factors by groups: channels that are summed over (of backward_weights, those of the source), of images
/// {groups * channels, pixels}.
struct PackedChannels {
    std::int64_t groups = 1, channels = 1, pixels = 1, vectors = 1;
    std::int64_t source(std::int64_t images) const { return images * pixels * groups * vectors; }
};
PackedChannels packed_channels(const Conv& op, Pass pass);

/// The launches of lowering.hpp with such terms, tap by tap; sources and weights are counted in vectors, and where
/// tensors are channels last, targets lie so: of backward_weights they are what is read, and counted in vectors.
std::vector<Launch> packed_launches(const Problem& problem, bool channels_last);

/// Whether a tensor begins at whole 16 bytes; BackendError unless all of these do.
bool is_whole(const void* begin);
void require_whole(std::initializer_list<const void*> begins);

}  // namespace rehearse::kernels::cuda
