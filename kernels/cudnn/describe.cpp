// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn/describe.hpp"

#include "core/error.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cudnn {
namespace {

// Channels are the second dimension; the fastest in memory is it, or the last.
Described dense(std::int64_t outermost, const Shape& rest, bool channels_last) {
    Described made{{outermost}, {}};
    made.sizes.insert(made.sizes.end(), rest.begin(), rest.end());
    made.strides.assign(made.sizes.size(), 1);
    std::int64_t stride = 1;
    const auto step_over = [&](std::size_t d) {
        made.strides[d] = stride;
        stride *= made.sizes[d];
    };
    if (channels_last) step_over(1);
    for (std::size_t d = made.sizes.size() - 1; d > 1; --d) step_over(d);
    if (!channels_last) step_over(1);
    step_over(0);
    return made;
}

}  // namespace

Correlation correlation(const Op& op, std::int64_t batch, bool channels_last) {
    const Conv& conv = std::get<Conv>(op);
    const Window& w = conv.window;
    const Shape weights = rehearse::weights(op).front().shape;
    Correlation made{dense(batch, input_shapes(op).front(), channels_last),
                     dense(weights.front(), {weights.begin() + 1, weights.end()}, channels_last),
                     dense(batch, output_shape(op), channels_last),
                     {},
                     {},
                     {},
                     {}};
    const auto add = [&](std::int64_t before, std::int64_t after, std::int64_t stride, std::int64_t dilation) {
        made.before.push_back(before);
        made.after.push_back(after);
        made.stride.push_back(stride);
        made.dilation.push_back(dilation);
    };
    if (conv.depth > 0) add(w.pad_front, w.pad_back, w.stride_d, w.dilation_d);
    add(w.pad_top, w.pad_bottom, w.stride_h, w.dilation_h);
    add(w.pad_left, w.pad_right, w.stride_w, w.dilation_w);
    return made;
}

Normalized normalized(const Op& op, std::int64_t batch, bool channels_last) {
    if (const auto* layer = std::get_if<LayerNorm>(&op)) {
        const std::int64_t rows = batch * layer->rows, size = layer->features;
        return {{{rows, size, 1, 1}, {size, 1, size, size}},
                {{1, size, 1, 1}, {size, 1, size, size}},
                {{rows, 1, 1, 1}, {1, 1, 1, 1}},
                true,
                layer_norm_epsilon};
    }
    const auto& norm = std::get<BatchNorm>(op);
    Normalized made{dense(batch, output_shape(op), channels_last), {}, {}, false, norm.epsilon};
    Described& one = made.parameters;
    one.sizes.assign(made.x.sizes.size(), 1), one.strides.assign(made.x.sizes.size(), norm.channels);
    one.sizes[1] = norm.channels, one.strides[1] = 1;
    made.statistics = one;
    return made;
}

// Row after row {rows, columns} is column after column {columns, rows}: so dst is seen transposed, {n, rows}, as are
// src {k, rows} and the weights {n, k}, or tied ones {k, n}.
Product product(const MatMul& op, Pass pass, std::int64_t batch) {
    const std::int64_t rows = batch * op.m;
    const std::int64_t row_of_weights = op.tied ? op.k : op.n;
    if (pass == Pass::forward) {
        const BiasPart bias = op.bias ? BiasPart::added : BiasPart::none;
        return {Factor::weights, Factor::src, op.tied, false, op.n, rows, op.k, row_of_weights, op.k, op.n, bias};
    }
    if (pass == Pass::backward_data) {
        return {Factor::weights, Factor::diff_dst, !op.tied, false, op.k, rows, op.n, row_of_weights, op.n, op.k};
    }
    require(pass == Pass::backward_weights, "an update is no product");
    if (op.tied) return {Factor::src, Factor::diff_dst, false, true, op.k, op.n, rows, op.k, op.n, op.k};
    const BiasPart bias = op.bias ? BiasPart::summed : BiasPart::none;
    return {Factor::diff_dst, Factor::src, false, true, op.n, op.k, rows, op.n, op.k, op.n, bias};
}

const void* factor(Factor which, const Buffers& buffers) {
    if (which == Factor::src) return buffers.src[0].bytes();
    return which == Factor::weights ? buffers.weights.bytes() : buffers.diff_dst.bytes();
}

void* result(Pass pass, const Buffers& buffers) {
    if (pass == Pass::forward) return buffers.dst.bytes();
    return pass == Pass::backward_data ? buffers.diff_src[0].bytes() : buffers.diff_weights.bytes();
}

}  // namespace rehearse::kernels::cudnn
