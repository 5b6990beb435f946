// SPDX-License-Identifier: Apache-2.0
// Convolution by the fast Fourier transform in tiles of 32 x 32 pixels (Vasilache et al. 2015; cuDNN's FFT_TILING):
// each tile yields (33 - r) x (33 - s) results; images, filters and results are transformed in memory, and multiplied
// frequency by frequency as complex products, of which half are conjugates of the others.
#include <algorithm>
#include <cmath>

#include "prices/convolution/families.hpp"

namespace rehearse::prices {

namespace {

constexpr double side = 32, frequencies = side * (side / 2 + 1);
constexpr double product_share = 0.5;  // of the peak: complex products of the size of a tile's channels
constexpr Seconds launch{30e-6};       // transforms of images, filters, products, results

}  // namespace

std::optional<FamilyTime> fourier(const ConvolutionShape& shape, const Board& board) {
    if (shape.stride_height != 1 || shape.stride_width != 1 || shape.dilated || shape.groups > 1) return std::nullopt;
    // No table has other filters transformed; those of a volume, one plane below the other, are not.
    if (shape.kernel_height != shape.kernel_width) return std::nullopt;
    if (shape.kernel_height > side || shape.taps() == 1) return std::nullopt;
    const double tiles = shape.batch * std::ceil(shape.out_height / (side + 1 - shape.kernel_height)) *
                         std::ceil(shape.out_width / (side + 1 - shape.kernel_width));
    const double complex_values =
        frequencies * (tiles * (shape.channels + shape.filters) + shape.channels * shape.filters);
    const Flops multiplied{8 * frequencies * tiles * shape.channels * shape.filters};
    const Seconds products = std::max(multiplied / (board.peak * product_share), moved(2 * complex_values, board));
    const Seconds transforms = moved(shape.values() + 2 * complex_values, board);
    return FamilyTime{products + transforms + launch, tiles, tiles * side * side / shape.outputs()};
}

}  // namespace rehearse::prices
