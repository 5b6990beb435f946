// SPDX-License-Identifier: Apache-2.0
// Activations, sums, concatenation and softmax: no layout to choose, all at the speed of memory.
#include "core/error.hpp"
#include "kernels/onednn/describe.hpp"
#include "kernels/onednn/locate.hpp"
#include "kernels/onednn/plans.hpp"

namespace rehearse::kernels::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;

algorithm algorithm_of(Nonlinearity kind) {
    switch (kind) {
        case Nonlinearity::relu:
            return algorithm::eltwise_relu;
        case Nonlinearity::sigmoid:
            return algorithm::eltwise_logistic;
        case Nonlinearity::tanh:
            return algorithm::eltwise_tanh;
        case Nonlinearity::gelu:
            return algorithm::eltwise_gelu_erf;
    }
    require(false, "unknown nonlinearity");
    return algorithm::undef;
}

dnnl::eltwise_forward::primitive_desc eltwise(algorithm kind, const memory::desc& data) {
    return described_alike<dnnl::eltwise_forward>(std::tuple{dnnl::prop_kind::forward_training, kind}, data, 0.0F,
                                                  0.0F);
}

dnnl::eltwise_backward::primitive_desc eltwise_back(const dnnl::eltwise_forward::primitive_desc& forward,
                                                    algorithm kind, const memory::desc& data) {
    return described_alike_back<dnnl::eltwise_backward>(forward, std::tuple{kind}, data, 0.0F, 0.0F);
}

Locate src_at(std::size_t i) {
    return [i](const Buffers& b) { return b.src[i].data(); };
}

}  // namespace

void plan(Program& program, const Activation& op, Pass pass, std::int64_t batch) {
    const memory::desc flat = dense({batch * elements(op.shape)});
    const auto forward = eltwise(algorithm_of(op.kind), flat);
    if (pass == Pass::forward) {
        program.add(forward, dnnl::eltwise_forward(forward),
                    {{DNNL_ARG_SRC, program.bind(flat, src)}, {DNNL_ARG_DST, program.bind(flat, dst)}});
        return;
    }
    const auto desc = eltwise_back(forward, algorithm_of(op.kind), flat);
    program.add(desc, dnnl::eltwise_backward(desc),
                {{DNNL_ARG_SRC, program.bind(flat, src)},
                 {DNNL_ARG_DIFF_DST, program.bind(flat, diff_dst)},
                 {DNNL_ARG_DIFF_SRC, program.bind(flat, diff_src)}});
}

dnnl::memory diff_of_result(Program& program, std::optional<Nonlinearity> activation, const memory::desc& output) {
    const memory diff = program.bind(output, diff_dst);
    if (!activation) return diff;
    const bool relu = *activation == Nonlinearity::relu;
    const algorithm kind = relu ? algorithm::eltwise_relu_use_dst_for_bwd : algorithm_of(*activation);
    const auto desc = eltwise_back(eltwise(kind, output), kind, output);
    const memory result = program.scratch(output);
    const Argument from = relu ? Argument{DNNL_ARG_DST, program.bind(output, dst_in)}
                               : Argument{DNNL_ARG_SRC, program.bind(output, workspace)};
    program.add(desc, dnnl::eltwise_backward(desc), {from, {DNNL_ARG_DIFF_DST, diff}, {DNNL_ARG_DIFF_SRC, result}});
    return result;
}

// Forward only. dst = src[0] + src[1], then dst += src[i]: oneDNN's sum primitive takes all inputs at once, but is not
// vectorised for f32 (32 x 16 x 32 x 32: 0.098 ms, binary 0.059 ms).
void plan(Program& program, const Add& op, Pass /*pass*/, std::int64_t batch) {
    const memory::desc flat = dense({batch * elements(op.shape)});
    const auto desc = described<dnnl::binary>(attributes(), algorithm::binary_add, flat, flat, flat);
    const memory sum = program.bind(flat, dst);
    for (std::int64_t i = 1; i < op.inputs; ++i) {
        const memory before = i == 1 ? program.bind(flat, src_at(0)) : sum;
        program.add(desc, dnnl::binary(desc),
                    {{DNNL_ARG_SRC_0, before},
                     {DNNL_ARG_SRC_1, program.bind(flat, src_at(static_cast<std::size_t>(i)))},
                     {DNNL_ARG_DST, sum}});
    }
}

// Forward only.
void plan(Program& program, const Concat& op, Pass /*pass*/, std::int64_t batch) {
    std::vector<memory::desc> parts;
    std::vector<Argument> arguments;
    for (const Shape& shape : input_shapes(op)) {
        const std::size_t i = parts.size();
        parts.push_back(dense(behind(batch, shape)));
        arguments.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), program.bind(parts.back(), src_at(i))});
    }
    const memory::desc whole = dense(behind(batch, output_shape(op)));
    const auto desc = described_concat(whole, 1, parts);
    arguments.push_back({DNNL_ARG_DST, program.bind(whole, dst)});
    program.add(desc, dnnl::concat(desc), arguments);
}

void plan(Program& program, const Softmax& op, Pass pass, std::int64_t batch) {
    const memory::desc rows = dense({batch, op.classes});
    if (pass == Pass::forward) {
        const auto forward = described_softmax(rows, 1);
        program.add(forward, dnnl::softmax_forward(forward),
                    {{DNNL_ARG_SRC, program.bind(rows, src)}, {DNNL_ARG_DST, program.bind(rows, dst)}});
        return;
    }
    const auto desc = described_softmax_back(rows, 1);
    program.add(desc, dnnl::softmax_backward(desc),
                {{DNNL_ARG_DST, program.bind(rows, dst_in)},
                 {DNNL_ARG_DIFF_DST, program.bind(rows, diff_dst)},
                 {DNNL_ARG_DIFF_SRC, program.bind(rows, diff_src)}});
}

}  // namespace rehearse::kernels::onednn
