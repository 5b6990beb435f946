// SPDX-License-Identifier: Apache-2.0
// What cuDNN runs, by its heuristics or by one engine.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cudnn/backends.hpp"
#include "kernels/cudnn/plans.hpp"
#include "kernels/heads.hpp"
#include "kernels/support.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;

struct Wanted {
    Rounding rounding = Rounding::f32;
    std::optional<std::int64_t> engine{};  // none: what the heuristics say
    bool channels_last = false;
};

bool is_norm(const Op& op) { return std::holds_alternative<BatchNorm>(op) || std::holds_alternative<LayerNorm>(op); }

std::string refusal_of(const BatchNorm& op) {
    if (op.relu || op.add) return "normalizes without a fused ReLU or sum: run the network with --fuse off";
    if (op.parts > 1) return "normalizes by the statistics of one rank";
    if (!op.affine) return "normalizes with gamma and beta";
    return op.channels % 4 == 0 ? "" : "normalizes channels by fours";
}

// Whatever the GPU.
std::string refusal_of(const Problem& problem, bool channels_last) {
    const auto* norm = std::get_if<BatchNorm>(&problem.op);
    if (channels_last && norm == nullptr && !std::holds_alternative<Conv>(problem.op)) {
        return fmt::format("runs convolutions and batch normalizations that are channels last, not {}",
                           kind_of(problem.op));
    }
    if (norm != nullptr) return refusal_of(*norm);
    if (std::holds_alternative<LayerNorm>(problem.op)) return {};
    if (const auto* op = std::get_if<Attention>(&problem.op)) {
        if (!has_own_keys(*op)) return "attends with keys and values of each head's own";
        if (problem.type == DataType::f32) return "attends in 16 bits only";
        if (op->causal && op->keys != op->queries) return "causal attention needs as many keys as queries";
        if (op->packed && op->heads * op->head_size % 8 != 0) return "packed parts must begin at whole 16 bytes";
        return {};
    }
    if (!std::holds_alternative<Conv>(problem.op)) {
        return fmt::format("runs convolutions, attention and normalizations, not {}", kind_of(problem.op));
    }
    if (has_fused_relu(problem.op)) return "convolves without a fused ReLU: run the network with --fuse off";
    return {};
}

Graph graph_of(const Problem& problem, bool channels_last) {
    if (const auto* op = std::get_if<Attention>(&problem.op)) {
        return graph_of(attention_graph(*op, problem.pass, problem.batch), problem.type);
    }
    if (is_norm(problem.op)) return norm_graph(problem, channels_last);
    return convolution_graph(problem, channels_last);
}

class Plans final : public Backend {
public:
    Plans(Engine& engine, std::string algorithm, Wanted wanted)
        : engine_(engine), algorithm_(std::move(algorithm)), wanted_(wanted) {}
    std::string_view name() const override { return "cudnn"; }
    std::string_view algorithm() const override { return algorithm_; }
    Accumulation accumulation() const override {
        return wanted_.rounding == Rounding::tf32 ? Accumulation::tf32 : Accumulation::f32;
    }
    std::int64_t workspace(const Op& op, std::int64_t batch) const override {
        if (is_norm(op)) return norm_workspace(op, batch);
        const auto* attention = std::get_if<Attention>(&op);
        return attention == nullptr ? 0 : attention_workspace(*attention, batch);
    }
    std::string version() const override {
        if (!engine_.refusal().empty() || !api().library.refusal().empty()) return {};
        return fmt::format("{}, cuDNN {}", engine_.version(), api().version());
    }
    Support supports(const Problem& problem) const override {
        if (Support any = supported_by_any(problem); !any.yes) return any;
        if (std::string reason = refusal(problem); !reason.empty()) return {.yes = false, .reason = reason};
        if (problem.pass == Pass::update) return {};
        const auto& found = planned(problem, any_scratch);
        return found.plan ? Support{} : Support{.yes = false, .reason = found.why};
    }
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        return prepare_within(problem, any_scratch);
    }
    std::unique_ptr<Kernel> prepare_within(const Problem& problem, Bytes limit) const override {
        require_supported(*this, problem);
        if (problem.pass == Pass::update) return cuda::layer_kernel(engine_, problem, 0);
        const auto& found = planned(problem, limit);
        if (!found.plan) throw BackendError(fmt::format("cuDNN cannot run {}: {}", to_string(problem), found.why));
        if (std::holds_alternative<Attention>(problem.op)) return attention_kernel(engine_, problem, found.plan);
        if (is_norm(problem.op)) return norm_kernel(engine_, problem, found.plan);
        return convolution_kernel(engine_, problem, found.plan, wanted_.channels_last);
    }
    Bytes scratch(const Problem& problem, Bytes limit) const override {
        if (problem.pass == Pass::update) return {};
        const auto& found = planned(problem, limit);
        return found.plan ? Bytes{static_cast<double>(found.plan->workspace)} : any_scratch;
    }

private:
    struct Found {
        std::shared_ptr<const Plan> plan;
        std::string why;
    };

    std::string refusal(const Problem& problem) const {
        if (std::string reason = refusal_of(problem, wanted_.channels_last); !reason.empty()) return reason;
        if (wanted_.rounding == Rounding::tf32 && problem.type != DataType::f32) {
            return "TF32 is how f32 is multiplied";
        }
        if (std::string reason = engine_.refusal(); !reason.empty()) return reason;
        return api().library.refusal();
    }

    // Finding a plan takes long: each is kept. That of one engine needs what it needs, whatever the limit.
    const Found& planned(const Problem& problem, Bytes limit) const {
        if (wanted_.engine) limit = any_scratch;
        const std::lock_guard lock{mutex_};
        Found& found = found_[fmt::format("{} within {}", to_string(problem), limit.value)];
        if (found.plan || !found.why.empty()) return found;
        Graph graph = graph_of(problem, wanted_.channels_last);
        graph.attach(handle(engine_));
        found.plan = wanted_.engine ? graph.plan(*wanted_.engine, wanted_.rounding, limit.value, found.why)
                                    : graph.best(wanted_.rounding, limit.value, found.why);
        if (!found.plan && found.why.empty()) found.why = "cuDNN gives no reason";
        return found;
    }

    Engine& engine_;
    std::string algorithm_;
    Wanted wanted_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, Found> found_;
};

// Of any pass of an ordinary convolution, of attention or a normalization: the numbers do not depend on sizes.
std::int64_t engines(Engine& engine) {
    std::int64_t most = 0;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        std::vector<Problem> problems{{Conv{8, 8, 8, 8, {}, 1, false}, pass, 1, DataType::f32}};
        if (pass != Pass::backward_weights) {
            problems.push_back({Attention{1, 64, 64, 64}, pass, 1, DataType::f16});
            problems.push_back({BatchNorm{8, 8, 8}, pass, 1, DataType::f16});
            problems.push_back({LayerNorm{8, 64}, pass, 1, DataType::f16});
        }
        for (const Problem& problem : problems) {
            Graph graph = graph_of(problem, false);
            graph.attach(handle(engine));
            most = std::max(most, graph.engine_count());
        }
    }
    return most;
}

}  // namespace

cudnnHandle_t handle(Engine& engine) {
    static cudnnHandle_t only = [] {
        cudnnHandle_t made = nullptr;
        api().check(api().create(&made), "cudnnCreate");
        return made;
    }();
    api().check(api().set_stream(only, static_cast<cudaStream_t>(engine.stream())), "cudnnSetStream");
    return only;
}

void execute(Engine& engine, const Plan& plan, const std::vector<std::int64_t>& ids, const std::vector<void*>& tensors,
             const void* workspace) {
    require(ids.size() == tensors.size(), "a tensor for each id");
    const auto count = static_cast<std::int64_t>(ids.size());
    Descriptor pack{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, tensors.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack.finalize("a plan's tensors");
    api().check(api().execute(handle(engine), plan.plan.get(), pack.get()), "a plan");
}

std::string refused_description(const Problem& problem, bool channels_last) {
    try {
        const Graph described = graph_of(problem, channels_last);
    } catch (const BackendError& error) {
        return error.what();
    }
    return {};
}

std::int64_t engines_on(const std::string& gpu, const Problem& problem, bool channels_last, std::string& why) {
    if (why = refusal_of(problem, channels_last); !why.empty()) return 0;
    Graph graph = graph_of(problem, channels_last);
    graph.attach(gpu);
    return graph.proposals(Rounding::f32, why);
}

std::vector<std::unique_ptr<Backend>> plans(Engine& engine, bool channels_last) {
    std::vector<std::unique_ptr<Backend>> all;
    const auto add = [&](const std::string& name, Wanted wanted) {
        wanted.channels_last = channels_last;
        all.push_back(std::make_unique<Plans>(engine, (channels_last ? "nhwc-" : "") + name, wanted));
    };
    add("heuristic", {});
    add("tensor-tf32", {Rounding::tf32});
    if (!engine.refusal().empty() || !api().library.refusal().empty()) return all;
    const std::int64_t count = engines(engine);
    for (std::int64_t i = 0; i < count; ++i) {
        add(fmt::format("engine{}", i), {Rounding::f32, i});
        add(fmt::format("tf32-engine{}", i), {Rounding::tf32, i});
    }
    return all;
}

}  // namespace rehearse::kernels::cudnn
