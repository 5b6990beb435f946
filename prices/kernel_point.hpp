// SPDX-License-Identifier: Apache-2.0
// A convolution, a matrix product or the steps of a recurrent layer as the numbers that its time on a device depends
// on: what a price model is fitted over. docs/device_prices.md says why these.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/op.hpp"
#include "core/units.hpp"
#include "prices/convolution/families.hpp"
#include "prices/gaussian_process.hpp"

namespace rehearse {

/// What a block of a GPU library's fused Winograd kernels holds: a part of one image, or of several small ones.
enum class ImageBlocks {
    unknown,  // the library's algorithms are not known
    one,
    several
};

/// What the features need to know of a device and a data type.
struct DeviceSheet {
    FlopRate peak;
    Bandwidth bandwidth;
    std::int64_t processors = 1;        // SMs, or cores: what tiles are dealt out to
    std::int64_t channel_multiple = 1;  // channels of a convolution are padded to it (8 on tensor cores)
    Bytes element;                      // of one number in memory
    /// Where it is known, the bound of a convolution is the least over the algorithms of libraries, and its features
    /// are those of library_point; else a roofline.
    std::optional<prices::Board> board = {};
    /// A core of a host whose own kernels were measured: features and bounds of host_point.
    bool host = false;
    /// What a product takes at least, however small it is: from its launch to its last store. Zero where it explains
    /// nothing, and the widths of narrow kernels do not either (tensor cores, CPUs).
    Seconds start{};
    /// Whether all that counts of the distance of a product's rows is that it is a multiple of 4 KB (cards of GDDR5).
    bool paged = false;
    /// Where it is known, convolutions have the bound of prices::library_choice too, and features of it.
    ImageBlocks image_blocks = ImageBlocks::unknown;
};

/// The product that a problem is, as GPU libraries see it (column-major): {m, n} = {m, k} x {k, n}.
///   matmul, rows = batch * op.m   m = op.n, n = rows,  k = op.k   forward           neither transposed
///                                 m = op.k, n = rows,  k = op.n   backward_data     the left one transposed
///                                 m = op.n, n = op.k,  k = rows   backward_weights  the right one transposed
///   conv2d (implicit product)     m = filters,  n = outputs,       k = channels * taps   forward
///                                 m = channels, n = inputs,        k = filters * taps    backward_data
///                                 m = filters,  n = channels*taps, k = outputs           backward_weights
struct ProductSizes {
    double m = 1, n = 1, k = 1;
    Pass pass = Pass::forward;  // of a dense layer, which says what is transposed
};
/// How many values lie between the rows of the left operand, of the right one and of the result (leading dimensions).
/// Rows of a dense layer's tokens are none of them: they are counted, and their width is another size.
std::array<double, 3> row_distances(const ProductSizes& sizes);
ProductSizes product_sizes(const Conv& op, Pass pass, std::int64_t batch);
ProductSizes product_sizes(const MatMul& op, Pass pass, std::int64_t batch);

/// The lower bounds of a kernel's time: arithmetic at the peak rate, and bytes at the memory's, after its start.
struct Bounds {
    Seconds compute, memory;
    Seconds start{};
    Seconds library{};  // the least over a GPU library's algorithms; 0: not known
    Seconds overlapped() const { return start + std::max(compute, memory); }
    Seconds in_turn() const { return start + compute + memory; }
};

struct KernelPoint {
    FeaturePoint point;
    Bounds bounds;
};

/// Whether a library may compute it with fewer multiplications, by Winograd's or Fourier's transform: of convolutions
/// of images whose filters have several rows and columns, no stride and no gaps.
bool may_transform(const Problem& problem);

/// The problem as the product that it is where a library goes by no transform: of one pixel, and of as many more
/// channels (backward: filters) as its filter has taps. Other problems as they are.
Problem without_transform(const Problem& problem);

/// Of a recurrent layer that of its steps alone, without the products with its input, as DeepBench times them.
/// Nothing when the problem is no convolution, product or recurrent layer, is an update, or is of a kind that was never
/// measured (groups, strides with dilation, padding that cannot be evened out).
std::optional<KernelPoint> kernel_point(const Problem& problem, const DeviceSheet& sheet);

/// Convolutions of a known library have as many features more: how far each measured family is behind the best, and how
/// far the best is from arithmetic and memory in turn.
inline constexpr std::size_t features_of_library = std::size(prices::measured_families) + 1;

/// The names of the features that all devices have, in their order.
std::vector<std::string_view> feature_names(std::string_view kind);

}  // namespace rehearse
