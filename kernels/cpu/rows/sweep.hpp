// SPDX-License-Identifier: Apache-2.0
// The geometry of direct convolution. Every stride, padding and dilation becomes the same regular sweep: the image is
// packed with its padding, split into phases (pixels that are congruent modulo the stride), so that the neighbour of an
// output pixel always reads the neighbour of an image pixel and a tap is one constant offset. A volume is packed plane
// by plane; each plane of outputs has grids of its own, whose taps lead to the planes that its windows reach.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/conv/convolution.hpp"

namespace rehearse::kernels::cpu {

/// Pixel (i, j) of a phase is pixel (first_y + i * step_y, first_x + j * step_x) of a tensor, zero where outside.
struct Lattice {
    std::int64_t first_y = 0, first_x = 0, step_y = 1, step_x = 1;
};

/// The image as it is packed: plane by plane, phases of equal size, one after the other.
struct PackedImage {
    std::vector<Lattice> phases;
    std::int64_t height = 0, width = 0;  // of the tensor
    std::int64_t rows = 0, columns = 0;  // of each phase
    std::int64_t planes = 1;             // of the tensor
    std::int64_t tensor_pixels() const { return planes * height * width; }
    std::int64_t plane_pixels() const { return static_cast<std::int64_t>(phases.size()) * rows * columns; }
    std::int64_t pixels() const { return planes * plane_pixels(); }
};

struct Tap {
    std::int64_t offset;  // pixels from where output pixel (0, 0) begins to what it reads
    std::int64_t index;   // (t * kernel_h + r) * kernel_w + s
};

/// Output pixels that see the same taps; pixel (i, j) begins at packed pixel i * image.columns + j.
struct Grid {
    std::vector<Tap> taps;
    std::int64_t rows = 0, columns = 0;
    Lattice at;              // in its plane of the output tensor
    std::int64_t plane = 0;  // of the output tensor
};

struct Sweep {
    PackedImage image;
    std::vector<Grid> grids;
    std::int64_t out_height = 0, out_width = 0, out_planes = 1;
    std::int64_t out_pixels() const { return out_planes * out_height * out_width; }
};

/// From src to dst: one grid a plane, as many phases as strides need.
Sweep forward_sweep(const Convolution& conv);

/// From diff_dst to diff_src: one phase; in each plane a grid for each phase of the strides, as its pixels meet only
/// the taps that are congruent.
Sweep backward_sweep(const Convolution& conv);

}  // namespace rehearse::kernels::cpu
