// SPDX-License-Identifier: Apache-2.0
// Which tasks each pass of attention takes.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cuda/flash_tasks.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"
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
        if (flash_refusal(engine(), op_, problem().type).empty() && begins_whole(b)) return by_tensor_cores(b);
        if (op_.head_size > largest_head)
            throw BackendError("attention on tensor cores is of tensors that begin at whole 16 bytes");
        if (problem().pass == Pass::forward) {
            auto task = attending<AttendForward>(b);
            task.dst = result(b.dst);
            return engine().run(PointTask{task});
        }
        const AttendCommon common = start_common(b);
        auto task = attending<AttendBackward>(b);
        task.diff = common.diff, task.common = common_;
        task.diff_q = heads(b.diff_src, Part::q);
        task.diff_k = heads(b.diff_src, Part::k), task.diff_v = heads(b.diff_src, Part::v);
        task.of_queries = true;
        if (task.diff_q) engine().run(PointTask{task});
        task.of_queries = false;
        if (task.diff_k || task.diff_v) engine().run(PointTask{task});
    }

    AttendCommon start_common(const Buffers& b) {
        auto common = attending<AttendCommon>(b);
        common.count = attention_workspace(op_, problem().batch);
        common.dst = result(b.dst_in), common.diff = result(b.diff_dst), common.common = common_;
        engine().run(PointTask{common});
        return common;
    }
    bool begins_whole(const Buffers& b) const {
        const auto is_whole = [](ConstView tensor) {
            return reinterpret_cast<std::uintptr_t>(tensor.bytes()) % sizeof(Vector) == 0;
        };
        return std::ranges::all_of(b.src, is_whole) && std::ranges::all_of(b.diff_src, is_whole) && is_whole(b.dst) &&
               is_whole(b.diff_dst);
    }
    void by_tensor_cores(const Buffers& b) {
        with_type(problem().type, [&]<typename Element>(Element) {
            if constexpr (sizeof(Element) == 2) {
                if (op_.head_size <= 64) return flash<Element, 64>(b);
                if (op_.head_size <= 128) return flash<Element, 128>(b);
                flash<Element, largest_flash_head>(b);
            }
        });
    }
    template <typename Element, int size>
    void flash(const Buffers& b) {
        if (problem().pass == Pass::forward) {
            auto task = attending<FlashForward<Element, size>>(b);
            task.dst = result(b.dst);
            return engine().run(FlashTask{task});
        }
        const AttendCommon common = start_common(b);
        const auto run = [&](auto task) {
            task.diff = common.diff, task.common = common_;
            task.diff_q = heads(b.diff_src, Part::q);
            task.diff_k = heads(b.diff_src, Part::k), task.diff_v = heads(b.diff_src, Part::v);
            const bool wanted = task.of_queries_only ? static_cast<bool>(task.diff_q) : task.diff_k || task.diff_v;
            if (wanted) engine().run(FlashTask{task});
        };
        run(attending<FlashBackward<Element, size, true>>(b));
        run(attending<FlashBackward<Element, size, false>>(b));
    }

    Attention op_;
    float* common_ = nullptr;
};

}  // namespace

// Shared memory of a block: 99 KiB on what compute capabilities 8.6, 8.9 and 12 are, 163 KiB and more on others
// from 8.0 on (CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability").
std::string flash_refusal(const Engine& engine, const Attention& op, DataType type) {
    if (type == DataType::f32) return "tensor cores attend in 16 bits";
    if (engine.capability() < 80) return "tensor cores attend from compute capability 8.0 on";
    if (op.head_size % 8 != 0) return "tensor cores attend with heads of whole 16 bytes";
    const int capability = engine.capability();
    const bool little = capability == 86 || capability == 89 || capability >= 120;
    const int most = little ? 128 : largest_flash_head;
    return op.head_size <= most ? "" : fmt::format("tensor cores attend here with heads of up to {} numbers", most);
}

std::unique_ptr<Kernel> attention_kernel(Engine& engine, const Problem& problem, std::int64_t workspace) {
    return std::make_unique<AttentionKernel>(engine, problem, workspace);
}

}  // namespace rehearse::kernels::cuda
