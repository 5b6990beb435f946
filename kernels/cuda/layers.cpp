// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/attention.hpp"
#include "kernels/heads.hpp"
#include "kernels/support.hpp"

namespace rehearse::kernels::cuda {
namespace {

struct Refusal {
    const Engine& engine;
    DataType type;
    std::int64_t batch;
    std::string operator()(const Add& op) const { return op.inputs < 1 ? "a sum of nothing" : ""; }
    std::string operator()(const BatchNorm& op) const {
        if (!op.affine) return "normalizes on the GPU with gamma and beta";
        return op.parts > 1 ? "normalizes on the GPU without sums of other ranks" : "";
    }
    std::string operator()(const Attention& op) const {
        if (!has_own_keys(op)) return "attends on the GPU with keys and values of each head's own";
        if (std::max(batch, op.heads) > most_blocks) {
            return fmt::format("attends on the GPU to at most {0} heads of at most {0} samples at once", most_blocks);
        }
        const std::string why = op.head_size > largest_head ? flash_refusal(engine, op, type) : "";
        if (why.empty()) return {};
        return fmt::format("attends on the GPU with heads of up to {} numbers, not {}: {}", largest_head, op.head_size,
                           why);
    }
    template <typename O>
    std::string operator()(const O& /*op*/) const {
        constexpr bool runs = std::is_same_v<O, Activation> || std::is_same_v<O, Concat> ||
                              std::is_same_v<O, ChannelPad> || std::is_same_v<O, Dropout> ||
                              std::is_same_v<O, Flatten> || std::is_same_v<O, Bias> || std::is_same_v<O, Pool> ||
                              std::is_same_v<O, LayerNorm> || std::is_same_v<O, Softmax> ||
                              std::is_same_v<O, SoftmaxLoss> || std::is_same_v<O, Embedding> ||
                              std::is_same_v<O, SgdUpdate> || std::is_same_v<O, AdamUpdate> ||
                              std::is_same_v<O, LambUpdate> || std::is_same_v<O, Lrn> || std::is_same_v<O, Resize>;
        return runs ? "" : fmt::format("has no {} on the GPU", kind_of(Op{O{}}));
    }
};

class Layers final : public Backend {
public:
    explicit Layers(Engine& engine) : engine_(engine) {}
    std::string_view name() const override { return "cuda"; }
    std::string_view algorithm() const override { return "layers"; }
    std::string version() const override { return engine_.version(); }
    Support supports(const Problem& problem) const override {
        if (Support any = supported_by_any(problem); !any.yes) return any;
        if (std::string reason = engine_.refusal(); !reason.empty()) return {.yes = false, .reason = reason};
        const bool plain_update = problem.pass == Pass::update && !updated(problem.op);
        const std::string reason =
            plain_update ? std::string{} : std::visit(Refusal{engine_, problem.type, problem.batch}, problem.op);
        return reason.empty() ? Support{} : Support{.yes = false, .reason = reason};
    }
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        require_supported(*this, problem);
        return layer_kernel(engine_, problem, workspace(problem.op, problem.batch));
    }
    std::int64_t workspace(const Op& op, std::int64_t batch) const override {
        if (const auto* norm = std::get_if<BatchNorm>(&op)) return 2 * norm->channels;
        if (const auto* norm = std::get_if<LayerNorm>(&op)) return layer_norm_workspace(*norm, batch);
        if (const auto* attention = std::get_if<Attention>(&op)) return attention_workspace(*attention, batch);
        if (const auto* dropout = std::get_if<Dropout>(&op)) return batch * elements(dropout->shape);
        return 0;
    }

private:
    Engine& engine_;
};

}  // namespace

std::unique_ptr<Backend> layers(Engine& engine) { return std::make_unique<Layers>(engine); }

Values beyond(Values values, std::int64_t first) {
    const std::int64_t bytes = first * static_cast<std::int64_t>(size_of(values.type).value);
    return {static_cast<std::byte*>(values.data) + bytes, values.type};
}

}  // namespace rehearse::kernels::cuda
