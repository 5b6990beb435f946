// SPDX-License-Identifier: Apache-2.0
// oneDNN pools NCHW at the speed of memory; max pooling keeps in its workspace which pixel of a window was the largest.
#include "kernels/onednn/describe.hpp"
#include "kernels/onednn/locate.hpp"
#include "kernels/onednn/plans.hpp"

namespace rehearse::kernels::onednn {
namespace {

using dnnl::memory;

struct Given {
    dnnl::algorithm algorithm;
    memory::desc src, dst;
    memory::dims strides, kernel, dilation, padding_l, padding_r;
};

dnnl::algorithm algorithm_of(const Pool& op) {
    if (op.kind == PoolKind::max) return dnnl::algorithm::pooling_max;
    return op.count_padding ? dnnl::algorithm::pooling_avg_include_padding
                            : dnnl::algorithm::pooling_avg_exclude_padding;
}

Given given(const Pool& op, std::int64_t batch) {
    const Window& w = op.window;
    const memory::desc in = dense(behind(batch, input_shapes(op)[0]));
    const memory::desc out = dense(behind(batch, output_shape(op)));
    if (op.depth > 0) {
        return {algorithm_of(op),
                in,
                out,
                {w.stride_d, w.stride_h, w.stride_w},
                {w.kernel_d, w.kernel_h, w.kernel_w},
                {w.dilation_d - 1, w.dilation_h - 1, w.dilation_w - 1},
                {w.pad_front, w.pad_top, w.pad_left},
                {w.pad_back, w.pad_bottom, w.pad_right}};
    }
    return {algorithm_of(op),
            in,
            out,
            {w.stride_h, w.stride_w},
            {w.kernel_h, w.kernel_w},
            {w.dilation_h - 1, w.dilation_w - 1},
            {w.pad_top, w.pad_left},
            {w.pad_bottom, w.pad_right}};
}

PoolingForward::primitive_desc forward_desc(const Given& g) {
    return described<PoolingForward>(attributes(), dnnl::prop_kind::forward_training, g.algorithm, g.src, g.dst,
                                     g.strides, g.kernel, g.dilation, g.padding_l, g.padding_r);
}

}  // namespace

std::size_t workspace_bytes(const Pool& op, std::int64_t batch) {
    return forward_desc(given(op, batch)).workspace_desc().get_size();
}

void plan(Program& program, const Pool& op, Pass pass, std::int64_t batch) {
    const Given g = given(op, batch);
    const auto forward = forward_desc(g);
    const memory::desc kept = forward.workspace_desc();
    std::vector<Argument> arguments;
    if (kept.get_size() > 0) arguments.push_back({DNNL_ARG_WORKSPACE, program.bind(kept, workspace)});
    if (pass == Pass::forward) {
        arguments.push_back({DNNL_ARG_SRC, program.bind(g.src, src)});
        arguments.push_back({DNNL_ARG_DST, program.bind(g.dst, dst)});
        program.add(forward, PoolingForward(forward), arguments);
        return;
    }
    const auto desc = described_back<PoolingBackward>(forward, g.algorithm, g.src, g.dst, g.strides, g.kernel,
                                                      g.dilation, g.padding_l, g.padding_r);
    arguments.push_back({DNNL_ARG_DIFF_DST, program.bind(g.dst, diff_dst)});
    arguments.push_back({DNNL_ARG_DIFF_SRC, program.bind(g.src, diff_src)});
    program.add(desc, PoolingBackward(desc), arguments);
}

}  // namespace rehearse::kernels::onednn
