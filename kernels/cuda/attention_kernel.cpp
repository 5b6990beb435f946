// SPDX-License-Identifier: Apache-2.0
// Which tasks each pass of attention takes.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cuda {
namespace {

class AttentionKernel final : public DeviceKernel {
public:
    AttentionKernel(Engine& engine, const Problem& problem, std::int64_t workspace)
        : DeviceKernel(engine, problem, workspace), op_(std::get<Attention>(problem.op)) {
        if (problem.pass != Pass::forward) common_ = reserve(attention_workspace(op_, problem.batch));
    }

private:
    // A part of src or of diff_src.
    template <typename Tensors>
    Heads heads(const Tensors& tensors, Part part) const {
        const std::int64_t width = op_.heads * op_.head_size, row = op_.packed ? 3 * width : width;
        const std::int64_t rows = part == Part::q ? op_.queries : op_.keys;
        const ConstView tensor = tensors[op_.packed ? 0 : static_cast<std::size_t>(part)];
        if (tensor.empty()) return {};
        return {beyond(values(tensor), op_.packed ? static_cast<std::int64_t>(part) * width : 0), rows * row, row};
    }
    Heads result(ConstView tensor) const {
        const std::int64_t width = op_.heads * op_.head_size;
        return {values(tensor), op_.queries * width, width};
    }
    template <typename Task>
    Task attending(const Buffers& b) const {
        Task task;
        task.q = heads(b.src, Part::q), task.k = heads(b.src, Part::k), task.v = heads(b.src, Part::v);
        task.heads = op_.heads, task.samples = problem().batch;
        task.queries = op_.queries, task.keys = op_.keys, task.size = op_.head_size;
        task.scale = static_cast<float>(score_scale(op_)), task.causal = op_.causal;
        task.log_sums = b.workspace.data();
        return task;
    }

    void compute(const Buffers& b) override {
        if (problem().pass == Pass::forward) {
            auto task = attending<AttendForward>(b);
            task.dst = result(b.dst);
            return engine().run(PointTask{task});
        }
        auto common = attending<AttendCommon>(b);
        common.count = attention_workspace(op_, problem().batch);
        common.dst = result(b.dst_in), common.diff = result(b.diff_dst), common.common = common_;
        engine().run(PointTask{common});
        auto task = attending<AttendBackward>(b);
        task.diff = common.diff, task.common = common_;
        task.diff_q = heads(b.diff_src, Part::q);
        task.diff_k = heads(b.diff_src, Part::k), task.diff_v = heads(b.diff_src, Part::v);
        task.of_queries = true;
        if (task.diff_q) engine().run(PointTask{task});
        task.of_queries = false;
        if (task.diff_k || task.diff_v) engine().run(PointTask{task});
    }

    Attention op_;
    float* common_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> attention_kernel(Engine& engine, const Problem& problem, std::int64_t workspace) {
    return std::make_unique<AttentionKernel>(engine, problem, workspace);
}

}  // namespace rehearse::kernels::cuda
