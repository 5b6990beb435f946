// SPDX-License-Identifier: Apache-2.0
// Attention by a plan of cuDNN's, on the problem's own buffers.
#include <limits>
#include <utility>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/typed.hpp"
#include "kernels/cudnn/plans.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cudnn {
namespace {

class AttentionByPlan final : public cuda::DeviceKernel {
public:
    AttentionByPlan(cuda::Engine& engine, const Problem& problem, std::shared_ptr<const Plan> plan)
        : DeviceKernel(engine, problem, attention_workspace(std::get<Attention>(problem.op), problem.batch)),
          op_(std::get<Attention>(problem.op)),
          graph_(attention_graph(op_, problem.pass, problem.batch)),
          plan_(std::move(plan)),
          scale_(static_cast<float>(score_scale(op_))) {
        if (plan_->workspace > 0) room_ = reserve((plan_->workspace + 3) / 4);
    }

private:
    void compute(const Buffers& b) override {
        std::vector<std::int64_t> ids;
        std::vector<void*> tensors;
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
            if (graph_.tensors[i].kept == Kept::nowhere) continue;
            ids.push_back(attention_id(i));
            tensors.push_back(memory(graph_.tensors[i].kept, b));
        }
        execute(engine(), *plan_, ids, tensors, room_);
    }
    void* memory(Kept kept, const Buffers& b) {
        const auto bytes = [](ConstView view) { return const_cast<void*>(view.bytes()); };
        if (kept == Kept::scale) return &scale_;
        if (kept == Kept::lowest) return &lowest_;
        if (kept == Kept::log_sums) return b.workspace.data();
        if (kept == Kept::diff_dst) return bytes(b.diff_dst);
        if (kept == Kept::dst) return bytes(problem().pass == Pass::forward ? ConstView(b.dst) : b.dst_in);
        const bool gradient = kept >= Kept::diff_q;
        const int part = static_cast<int>(kept) - static_cast<int>(gradient ? Kept::diff_q : Kept::q);
        const auto tensor = static_cast<std::size_t>(op_.packed ? 0 : part);
        if (!gradient) return begin(bytes(b.src[tensor]), kept);
        if (!b.diff_src[tensor].empty()) return begin(b.diff_src[tensor].bytes(), kept);
        // Nobody wants it, but cuDNN writes it.
        auto& unwanted = unwanted_[static_cast<std::size_t>(part)];
        if (unwanted == nullptr) unwanted = engine().allocate(b.src[tensor].size_bytes());
        return unwanted.get();
    }
    void* begin(void* tensor, Kept kept) const {
        return cuda::offset(tensor, first_element(op_, kept), problem().type);
    }

    Attention op_;
    AttentionGraph graph_;
    std::shared_ptr<const Plan> plan_;
    float scale_, lowest_ = std::numeric_limits<float>::lowest();
    std::array<cuda::Memory, 3> unwanted_;
    float* room_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> attention_kernel(cuda::Engine& engine, const Problem& problem,
                                         std::shared_ptr<const Plan> plan) {
    return std::make_unique<AttentionByPlan>(engine, problem, std::move(plan));
}

}  // namespace rehearse::kernels::cudnn
