// SPDX-License-Identifier: Apache-2.0
// Attention in separate steps, as a framework without a fused kernel runs it: product, softmax, product, with the
// probabilities in memory from forward to backward. Heads are read where they lie, without a copy.
#include <memory>
#include <vector>

#include "kernels/heads.hpp"
#include "kernels/onednn/describe.hpp"
#include "kernels/onednn/locate.hpp"
#include "kernels/onednn/plans.hpp"

namespace rehearse::kernels::onednn {
namespace {

using dnnl::memory;

constexpr float hidden = -1e30F;  // added to a score that a causal query does not see; exp of it is 0

// {batch, heads, rows, columns} matrices.
struct Matrices {
    const Attention& op;
    std::int64_t batch;

    memory::dims dims(std::int64_t rows, std::int64_t columns) const { return {batch, op.heads, rows, columns}; }
    std::int64_t row(bool is_input) const { return op.heads * op.head_size * (is_input && op.packed ? 3 : 1); }

    // Rows of heads as they lie in a tensor, or their transpose.
    memory::desc heads(std::int64_t rows, bool is_input, bool transposed = false) const {
        const std::int64_t step = row(is_input);
        if (transposed) {
            return {dims(op.head_size, rows), memory::data_type::f32, memory::dims{rows * step, op.head_size, 1, step}};
        }
        return {dims(rows, op.head_size), memory::data_type::f32, memory::dims{rows * step, op.head_size, step, 1}};
    }
    memory::desc q(bool transposed = false) const { return heads(op.queries, true, transposed); }
    memory::desc kv(bool transposed = false) const { return heads(op.keys, true, transposed); }
    memory::desc result(bool transposed = false) const { return heads(op.queries, false, transposed); }
    memory::desc scores() const { return dense(dims(op.queries, op.keys)); }
    memory::desc scores_across() const {
        const std::int64_t each = op.queries * op.keys;
        return {dims(op.keys, op.queries), memory::data_type::f32, memory::dims{op.heads * each, each, 1, op.keys}};
    }
};

// Where a part begins: in a tensor of its own, or in the packed one.
Locate input_at(const Attention& op, Part part) {
    const auto index = op.packed ? 0 : static_cast<std::size_t>(part);
    const std::int64_t offset = op.packed ? static_cast<std::int64_t>(part) * op.heads * op.head_size : 0;
    return [=](const Buffers& b) { return b.src[index].data() + offset; };
}

Locate gradient_at(const Attention& op, Part part) {
    const auto index = op.packed ? 0 : static_cast<std::size_t>(part);
    const std::int64_t offset = op.packed ? static_cast<std::int64_t>(part) * op.heads * op.head_size : 0;
    return [=](const Buffers& b) -> const float* {
        return b.diff_src[index].empty() ? nullptr : b.diff_src[index].data() + offset;
    };
}

// A product times `scale`, plus a mask if there is one. Version 3 has no scale of a result, but the same as a post-op.
dnnl::primitive_attr scaled(double scale, const memory::desc* mask = nullptr) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops after;
#if DNNL_VERSION_MAJOR >= 3
    if (scale != 1) append_eltwise(after, dnnl::algorithm::eltwise_linear, static_cast<float>(scale));
#else
    if (scale != 1) attr.set_output_scales(0, {static_cast<float>(scale)});
#endif
    if (mask != nullptr) after.append_binary(dnnl::algorithm::binary_add, *mask);
    attr.set_post_ops(after);
    return attr;
}

void multiply(Program& program, const memory& a, const memory& b, const memory& c, const dnnl::primitive_attr& attr,
              std::vector<Argument> more = {}) {
    const auto desc = described<dnnl::matmul>(attr, a.get_desc(), b.get_desc(), c.get_desc());
    more.insert(more.end(), {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    program.add(desc, dnnl::matmul(desc), more);
}

memory causal_mask(Program& program, const Attention& op) {
    const auto mask = std::make_shared<std::vector<float>>(op.queries * op.keys);
    for (std::int64_t i = 0; i < op.queries; ++i) {
        for (std::int64_t j = keys_seen(op, i); j < op.keys; ++j) (*mask)[i * op.keys + j] = hidden;
    }
    return program.bind(dense({1, 1, op.queries, op.keys}), [mask](const Buffers&) { return mask->data(); });
}

void plan_forward(Program& program, const Matrices& m) {
    const Attention& op = m.op;
    const memory q = program.bind(m.q(), input_at(op, Part::q));
    const memory k = program.bind(m.kv(true), input_at(op, Part::k));
    const memory v = program.bind(m.kv(), input_at(op, Part::v));
    const memory p = program.bind(m.scores(), workspace);
    if (op.causal) {
        const memory mask = causal_mask(program, op);
        const memory::desc added = mask.get_desc();
        const dnnl::primitive_attr attr = scaled(score_scale(op), &added);
        const int place = DNNL_ARG_ATTR_MULTIPLE_POST_OP(attr.get_post_ops().len() - 1);
        multiply(program, q, k, p, attr, {{place | DNNL_ARG_SRC_1, mask}});
    } else {
        multiply(program, q, k, p, scaled(score_scale(op)));
    }
    const auto desc = described_softmax(m.scores(), 3);
    program.add(desc, dnnl::softmax_forward(desc), {{DNNL_ARG_SRC, p}, {DNNL_ARG_DST, p}});
    multiply(program, p, v, program.bind(m.result(), dst), attributes());
}

void plan_backward(Program& program, const Matrices& m) {
    const Attention& op = m.op;
    const memory p = program.bind(m.scores(), workspace);
    const memory diff_p = program.scratch(m.scores());
    const memory diff = program.bind(m.result(), diff_dst);
    const auto gradient = [&](const memory::desc& desc, Part part) {
        return program.bind(desc, gradient_at(op, part), true);
    };
    multiply(program, diff, program.bind(m.kv(true), input_at(op, Part::v)), diff_p, attributes());
    multiply(program, program.bind(m.scores_across(), workspace), diff, gradient(m.kv(), Part::v), attributes());
    const auto desc = described_softmax_back(m.scores(), 3);
    program.add(desc, dnnl::softmax_backward(desc),
                {{DNNL_ARG_DST, p}, {DNNL_ARG_DIFF_DST, diff_p}, {DNNL_ARG_DIFF_SRC, diff_p}});
    const dnnl::primitive_attr scale = scaled(score_scale(op));
    multiply(program, diff_p, program.bind(m.kv(), input_at(op, Part::k)), gradient(m.q(), Part::q), scale);
    multiply(program, program.view(diff_p, m.scores_across()), program.bind(m.q(), input_at(op, Part::q)),
             gradient(m.kv(), Part::k), scale);
}

}  // namespace

std::size_t workspace_bytes(const Attention& op, std::int64_t batch) {
    return sizeof(float) * static_cast<std::size_t>(batch * op.heads * op.queries * op.keys);
}

void plan(Program& program, const Attention& op, Pass pass, std::int64_t batch) {
    const Matrices matrices{op, batch};
    if (pass == Pass::forward) plan_forward(program, matrices);
    if (pass == Pass::backward_data) plan_backward(program, matrices);
}

}  // namespace rehearse::kernels::onednn
