// SPDX-License-Identifier: Apache-2.0
// oneDNN's direct kernels want channels in blocks of 8 or 16; on plain NCHW it unrolls each image into a matrix first.
// Reordering to blocks and back costs about a tenth of a 3 x 3 convolution and makes it two to four times faster, so
// the layout is left to oneDNN, except for (measured on one Zen 4 core, AVX-512, oneDNN 2.6.3)
// - a dense 1 x 1 over at least 14 x 14 pixels: NCHW is a matrix already (64 -> 256 at 56 x 56: 3.1 ms, blocked 4.9
// ms);
// - gradients of images with fewer than 4 channels, which would be padded to a block (3 <- 64: 15 ms, blocked 45 ms).
#include "kernels/onednn/describe.hpp"
#include "kernels/onednn/locate.hpp"
#include "kernels/onednn/plans.hpp"

namespace rehearse::kernels::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t matrix_pixels = 196;  // 14 x 14
constexpr std::int64_t few_channels = 4;

// Tensors as the caller has them.
struct Given {
    memory::desc src, weights, bias, dst;
    dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};

Given given(const Conv& op, std::int64_t batch) {
    const Shape kernel = weights(op)[0].shape;
    memory::dims weight_dims(kernel.begin(), kernel.end());
    if (op.groups > 1) {
        weight_dims[0] /= op.groups;
        weight_dims.insert(weight_dims.begin(), op.groups);
    }
    return {dense(behind(batch, input_shapes(op)[0])), dense(weight_dims),
            op.bias ? dense({op.filters}) : memory::desc(), dense(behind(batch, output_shape(op)))};
}

bool stays_dense(const Conv& op, Pass pass, ConvAlgorithm chosen) {
    if (chosen != ConvAlgorithm::faster_layout) return chosen == ConvAlgorithm::gemm;
    const Window& w = op.window;
    const std::int64_t pixels = elements(input_shapes(op)[0]) / op.channels;
    const bool is_matrix = w == Window{} && op.groups == 1 && pixels >= matrix_pixels;
    return is_matrix || (pass == Pass::backward_data && op.channels / op.groups < few_channels);
}

memory::desc any_layout(const memory::desc& desc) {
    return {dims_of(desc), memory::data_type::f32, memory::format_tag::any};
}

// What oneDNN may lay out as it likes.
Given asked(const Conv& op, Pass pass, const Given& g, ConvAlgorithm chosen) {
    if (stays_dense(op, pass, chosen)) return {g.src, any_layout(g.weights), g.bias, g.dst};
    return {any_layout(g.src), any_layout(g.weights), g.bias, any_layout(g.dst),
            chosen == ConvAlgorithm::winograd ? dnnl::algorithm::convolution_winograd
                                              : dnnl::algorithm::convolution_direct};
}

struct Sliding {
    memory::dims strides, dilates, padding_l, padding_r;
};

Sliding sliding(const Conv& op) {
    const Window& w = op.window;
    if (op.depth > 0) {
        return {{w.stride_d, w.stride_h, w.stride_w},
                {w.dilation_d - 1, w.dilation_h - 1, w.dilation_w - 1},
                {w.pad_front, w.pad_top, w.pad_left},
                {w.pad_back, w.pad_bottom, w.pad_right}};
    }
    return {{w.stride_h, w.stride_w},
            {w.dilation_h - 1, w.dilation_w - 1},
            {w.pad_top, w.pad_left},
            {w.pad_bottom, w.pad_right}};
}

dnnl::convolution_forward::primitive_desc forward_desc(const Conv& op, const Given& a, bool relu) {
    const Sliding s = sliding(op);
    const auto kind = dnnl::prop_kind::forward_training;
    const dnnl::primitive_attr& attr = relu ? attributes_with_relu() : attributes();
    using Forward = dnnl::convolution_forward;
    if (!op.bias) {
        return described<Forward>(attr, kind, a.algorithm, a.src, a.weights, a.dst, s.strides, s.dilates, s.padding_l,
                                  s.padding_r);
    }
    return described<Forward>(attr, kind, a.algorithm, a.src, a.weights, a.bias, a.dst, s.strides, s.dilates,
                              s.padding_l, s.padding_r);
}

// What a backward pass is told of forward: the convolution without its ReLU.
dnnl::convolution_forward::primitive_desc hint(const Conv& op, const Given& a) { return forward_desc(op, a, false); }

// The gradient of the convolution's own result, ReLU undone.
memory diff_of_result(Program& program, const Conv& op, const Given& g, const memory::desc& wanted) {
    const std::optional<Nonlinearity> relu = op.relu ? std::optional{Nonlinearity::relu} : std::nullopt;
    return program.reordered(onednn::diff_of_result(program, relu, g.dst), wanted);
}

std::size_t bias_offset(const Given& g) { return g.weights.get_size() / sizeof(float); }

void plan_forward(Program& program, const Conv& op, const Given& g, ConvAlgorithm chosen) {
    const auto desc = forward_desc(op, asked(op, Pass::forward, g, chosen), op.relu);
    std::vector<Argument> arguments{{DNNL_ARG_SRC, program.input(g.src, desc.src_desc(), src)},
                                    {DNNL_ARG_WEIGHTS, program.input(g.weights, desc.weights_desc(), weights)},
                                    {DNNL_ARG_DST, program.output(g.dst, desc.dst_desc(), dst)}};
    if (op.bias) {
        const auto bias = [offset = bias_offset(g)](const Buffers& b) { return b.weights.data() + offset; };
        arguments.push_back({DNNL_ARG_BIAS, program.bind(g.bias, bias)});
    }
    program.add(desc, dnnl::convolution_forward(desc), arguments);
}

void plan_backward_data(Program& program, const Conv& op, const Given& g, ConvAlgorithm chosen) {
    const Given a = asked(op, Pass::backward_data, g, chosen);
    const Sliding s = sliding(op);
    const auto desc = described_back<dnnl::convolution_backward_data>(hint(op, a), a.algorithm, a.src, a.weights, a.dst,
                                                                      s.strides, s.dilates, s.padding_l, s.padding_r);
    program.add(desc, dnnl::convolution_backward_data(desc),
                {{DNNL_ARG_DIFF_DST, diff_of_result(program, op, g, desc.diff_dst_desc())},
                 {DNNL_ARG_WEIGHTS, program.input(g.weights, desc.weights_desc(), weights)},
                 {DNNL_ARG_DIFF_SRC, program.output(g.src, desc.diff_src_desc(), diff_src)}});
}

dnnl::convolution_backward_weights::primitive_desc backward_weights_desc(const Conv& op, const Given& a) {
    const Sliding s = sliding(op);
    using Backward = dnnl::convolution_backward_weights;
    if (!op.bias) {
        return described_back<Backward>(hint(op, a), a.algorithm, a.src, a.weights, a.dst, s.strides, s.dilates,
                                        s.padding_l, s.padding_r);
    }
    return described_back<Backward>(hint(op, a), a.algorithm, a.src, a.weights, a.bias, a.dst, s.strides, s.dilates,
                                    s.padding_l, s.padding_r);
}

void plan_backward_weights(Program& program, const Conv& op, const Given& g, ConvAlgorithm chosen) {
    const auto desc = backward_weights_desc(op, asked(op, Pass::backward_weights, g, chosen));
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, program.input(g.src, desc.src_desc(), src)},
        {DNNL_ARG_DIFF_DST, diff_of_result(program, op, g, desc.diff_dst_desc())},
        {DNNL_ARG_DIFF_WEIGHTS, program.output(g.weights, desc.diff_weights_desc(), diff_weights)}};
    if (op.bias) {
        const auto bias = [offset = bias_offset(g)](const Buffers& b) { return b.diff_weights.data() + offset; };
        arguments.push_back({DNNL_ARG_DIFF_BIAS, program.bind(g.bias, bias)});
    }
    program.add(desc, dnnl::convolution_backward_weights(desc), arguments);
}

}  // namespace

void plan(Program& program, const Conv& op, Pass pass, std::int64_t batch, ConvAlgorithm chosen) {
    const Given g = given(op, batch);
    if (pass == Pass::forward) plan_forward(program, op, g, chosen);
    if (pass == Pass::backward_data) plan_backward_data(program, op, g, chosen);
    if (pass == Pass::backward_weights) plan_backward_weights(program, op, g, chosen);
}

}  // namespace rehearse::kernels::onednn
