// SPDX-License-Identifier: Apache-2.0
// Spatial parallelism: ranks share each image or volume (Oyama et al. 2020; Dryden et al. 2019; Kahira et al. 2021).
#pragma once

#include <span>
#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Cuts dimension `dim` of images and volumes {channels, (depth,) height, width}.
struct SpatialAxis {
    std::string name;  // of the mesh
    int index = 0;
    std::int64_t parts = 1;
    std::int64_t dim = 1;
};

/// Whether a convolution's rows at the edge of a block are computed apart from the others, which then wait for no
/// neighbour (Plan::methods).
struct Edges {
    bool apart = false;
};

/// What each rank of a grid computes: its block of every image. The weights are whole on each, their gradients a sum
/// over the grid (Origin::summed). Walks the network once and keeps for each output the axes along which it is cut:
/// - a convolution, transposed convolution or pool gets the rows that it lacks from the neighbours (Movement::halo),
/// one
///   dimension after the other, so that corners come along by themselves;
/// - batch normalization adds up sums over the blocks, so that its statistics are the whole images';
/// - a global average pool adds up the ranks' parts of the mean;
/// - the loss of a pixel is computed where the pixel is;
/// - what works on each pixel by itself stays in blocks.
/// Where the ranks cannot share rows evenly, or a layer needs all of an image, they gather it along that axis and all
/// compute the same from there on (Resize: and take their blocks again). InputError when the samples cannot be cut
/// evenly, or no layer with weights works on blocks. `grid`, the axis that `axes` make together, is what sums go along.
/// With `edges.apart` a convolution is three: of the rows that need no other rank's, which is computed while the halo
/// is exchanged (in a grid: that of the last dimension), and of those before and behind them; then they are joined.
Part split_spatial(const Network& network, std::span<const SpatialAxis> axes, const std::string& grid,
                   Edges edges = {});

}  // namespace rehearse::schedule
