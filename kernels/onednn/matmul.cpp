// SPDX-License-Identifier: Apache-2.0
// An inner product on our own layout: weights {k, n} are oneDNN's {n, k} with the strides exchanged (tied ones are {n,
// k} already), so nothing is reordered. A dense layer's weights are its largest tensor: reordering them each time would
// cost as much as the product.
#include "kernels/onednn/describe.hpp"
#include "kernels/onednn/locate.hpp"
#include "kernels/onednn/plans.hpp"

namespace rehearse::kernels::onednn {
namespace {

using dnnl::memory;

struct Given {
    memory::desc src, weights, bias, dst;
};

Given given(const MatMul& op, std::int64_t batch) {
    const std::int64_t rows = batch * op.m;
    const memory::dims strides = op.tied ? memory::dims{op.k, 1} : memory::dims{1, op.n};
    const memory::desc weights({op.n, op.k}, memory::data_type::f32, strides);
    return {dense({rows, op.k}), weights, op.bias ? dense({op.n}) : memory::desc(), dense({rows, op.n})};
}

dnnl::inner_product_forward::primitive_desc forward_desc(const MatMul& op, const Given& g) {
    const auto kind = dnnl::prop_kind::forward_training;
    const bool relu = op.activation == Nonlinearity::relu;
    const dnnl::primitive_attr& attr = relu ? attributes_with_relu() : attributes();
    using Forward = dnnl::inner_product_forward;
    if (!op.bias) return described<Forward>(attr, kind, g.src, g.weights, g.dst);
    return described<Forward>(attr, kind, g.src, g.weights, g.bias, g.dst);
}

// What a backward pass is told of forward: the product without its activation.
dnnl::inner_product_forward::primitive_desc hint(MatMul op, const Given& g) {
    op.activation.reset();
    return forward_desc(op, g);
}

dnnl::inner_product_backward_weights::primitive_desc backward_weights_desc(const MatMul& op, const Given& g) {
    using Backward = dnnl::inner_product_backward_weights;
    if (!op.bias) return described_back<Backward>(hint(op, g), g.src, g.weights, g.dst);
    return described_back<Backward>(hint(op, g), g.src, g.weights, g.bias, g.dst);
}

// dst = gelu(result); backward takes the slope at the result, which stays in the workspace.
void add_gelu(Program& program, const memory::desc& desc, const memory& result) {
    const auto gelu = described_alike<dnnl::eltwise_forward>(
        std::tuple{dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_gelu_erf}, desc, 0.0F, 0.0F);
    program.add(gelu, dnnl::eltwise_forward(gelu), {{DNNL_ARG_SRC, result}, {DNNL_ARG_DST, program.bind(desc, dst)}});
}

}  // namespace

void plan(Program& program, const MatMul& op, Pass pass, std::int64_t batch) {
    const Given g = given(op, batch);
    const std::int64_t bias_offset = op.k * op.n;
    if (pass == Pass::forward) {
        const auto desc = forward_desc(op, g);
        const memory result = program.bind(g.dst, keeps_slope(op) ? workspace : dst);
        std::vector<Argument> arguments{{DNNL_ARG_SRC, program.bind(g.src, src)},
                                        {DNNL_ARG_WEIGHTS, program.bind(g.weights, weights)},
                                        {DNNL_ARG_DST, result}};
        const auto bias = [bias_offset](const Buffers& b) { return b.weights.data() + bias_offset; };
        if (op.bias) arguments.push_back({DNNL_ARG_BIAS, program.bind(g.bias, bias)});
        program.add(desc, dnnl::inner_product_forward(desc), arguments);
        if (keeps_slope(op)) add_gelu(program, g.dst, result);
    }
    if (pass == Pass::backward_data) {
        const auto desc = described_back<dnnl::inner_product_backward_data>(hint(op, g), g.src, g.weights, g.dst);
        program.add(desc, dnnl::inner_product_backward_data(desc),
                    {{DNNL_ARG_DIFF_DST, diff_of_result(program, op.activation, g.dst)},
                     {DNNL_ARG_WEIGHTS, program.bind(g.weights, weights)},
                     {DNNL_ARG_DIFF_SRC, program.bind(g.src, diff_src)}});
    }
    if (pass == Pass::backward_weights) {
        const auto desc = backward_weights_desc(op, g);
        std::vector<Argument> arguments{{DNNL_ARG_SRC, program.bind(g.src, src)},
                                        {DNNL_ARG_DIFF_DST, diff_of_result(program, op.activation, g.dst)},
                                        {DNNL_ARG_DIFF_WEIGHTS, program.bind(g.weights, diff_weights)}};
        const auto bias = [bias_offset](const Buffers& b) { return b.diff_weights.data() + bias_offset; };
        if (op.bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, program.bind(g.bias, bias)});
        program.add(desc, dnnl::inner_product_backward_weights(desc), arguments);
    }
}

}  // namespace rehearse::kernels::onednn
