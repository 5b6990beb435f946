// SPDX-License-Identifier: Apache-2.0
// What a call that a profiler recorded has in common with a layer: its family by the names of PyTorch's operators
// (aten/src/ATen/native/native_functions.yaml), and the shapes of what it read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/network.hpp"
#include "core/recording.hpp"

namespace rehearse::calibrate {

/// Operators that are told apart. Those before `activation` are matched with layers by order and shape; the others are
/// found between them.
enum class CallFamily : std::uint8_t {
    convolution,
    transposed_convolution,
    product,
    batch_norm,
    layer_norm,
    pool,
    embedding,
    loss,
    attention,
    recurrent,
    normalization,  // of groups, of instances, by the root of mean squares
    activation,
    add,
    dropout,
    concat,
    softmax,
    arithmetic,  // of each element by itself; which function, says_function
    movement,    // views, copies, transpositions
    other
};
constexpr bool is_anchor(CallFamily family) { return family < CallFamily::activation; }

CallFamily family_of(const Op& op);
/// Of an operator of the forward pass, "aten::conv2d", or a node of the backward pass, "ConvolutionBackward0".
CallFamily family_of(std::string_view name);
/// Whether a call of arithmetic computes the function that an operator of arithmetic does, "aten::mul_" of a "mul".
bool says_function(const Op& op, std::string_view name);
/// "autograd::engine::evaluate_function: ConvolutionBackward0" without what every node begins with.
std::string_view short_name(std::string_view name);

using Shapes = std::vector<std::vector<std::int64_t>>;
/// Of "[[4, 3, 32, 32], [8, 3, 3, 3], []]"; empty where nothing was recorded.
Shapes shapes_in(std::string_view text);

enum class Agreement { different, unknown, equal };
/// Whether a call of a layer's family read what the layer reads, at this many samples.
Agreement agreement(const Layer& layer, std::string_view name, const Shapes& shapes, std::int64_t batch);

/// Columns of the weights that a product reads, 0 where they were not recorded; its depth.
struct ProductShape {
    std::int64_t columns = 0, depth = 0, rows = 0;
};
ProductShape product_shape(std::string_view name, const Shapes& shapes);

}  // namespace rehearse::calibrate
