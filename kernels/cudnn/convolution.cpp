// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"
#include "kernels/cudnn/backends.hpp"
#include "kernels/cudnn/graph.hpp"
#include "kernels/support.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;
using cuda::Memory;

cudnnHandle_t handle(Engine& engine) {
    static cudnnHandle_t only = [] {
        cudnnHandle_t made = nullptr;
        api().check(api().create(&made), "cudnnCreate");
        return made;
    }();
    api().check(api().set_stream(only, static_cast<cudaStream_t>(engine.stream())), "cudnnSetStream");
    return only;
}

struct Wanted {
    Rounding rounding = Rounding::f32;
    std::optional<std::int64_t> engine{};  // none: what the heuristics say
};

// A tensor's memory for cuDNN, which takes whole multiples of 16 bytes only: weights begin where those before them end.
class Aligned {
public:
    void* of(Engine& engine, void* memory, std::size_t bytes) {
        if (reinterpret_cast<std::uintptr_t>(memory) % 16 == 0) return memory;
        if (room_ == nullptr) room_ = engine.allocate(bytes);
        return room_.get();
    }

private:
    Memory room_;
};

class Convolution final : public cuda::DeviceKernel {
public:
    Convolution(Engine& engine, const Problem& problem, std::shared_ptr<const Plan> plan)
        : DeviceKernel(engine, problem), op_(cuda::volume(problem.op)), plan_(std::move(plan)) {
        if (plan_->workspace > 0) room_ = reserve((plan_->workspace + 3) / 4);
    }

private:
    void compute(const Buffers& b) override {
        const bool forward = problem().pass == Pass::forward, weights = problem().pass == Pass::backward_weights;
        const std::int64_t count = cuda::weight_count(op_);
        const cuda::Values w = cuda::values(weights ? ConstView(b.diff_weights) : ConstView(b.weights));
        const cuda::Values aligned{aligned_.of(engine(), w.data, static_cast<std::size_t>(count) * 4), w.type};
        if (!weights && aligned.data != w.data) copy(w, aligned, count);
        const void* x = problem().pass == Pass::backward_data ? b.diff_src[0].bytes() : b.src[0].bytes();
        const void* y = forward ? b.dst.bytes() : b.diff_dst.bytes();
        execute({const_cast<void*>(x), aligned.data, const_cast<void*>(y)});
        if (weights && aligned.data != w.data) copy(aligned, w, count);
        if (!op_.bias) return;
        if (forward) add_bias(b, cuda::beyond(w, count));
        if (weights) sum_bias(b, cuda::beyond(w, count).data);
    }
    void execute(std::array<void*, 3> tensors) {
        Descriptor pack{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
        pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ConvolutionGraph::ids.data());
        pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, tensors.data());
        const void* room = room_;
        pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
        pack.finalize("a plan's tensors");
        api().check(api().execute(handle(engine()), plan_->plan.get(), pack.get()), "a convolution");
    }
    void copy(cuda::Values from, cuda::Values to, std::int64_t count) {
        cuda::CopyRuns task;
        task.count = task.length = count;
        task.from = from, task.to = to;
        engine().run(cuda::PointTask{task});
    }
    void add_bias(const Buffers& b, cuda::Values bias) {
        cuda::AddBias task;
        task.count = cuda::count_of(b.dst);
        task.src = task.dst = cuda::values(b.dst), task.bias = bias;
        task.channels = op_.filters, task.inner = task.count / (problem().batch * op_.filters);
        engine().run(cuda::PointTask{task});
    }
    void sum_bias(const Buffers& b, void* to) {
        cuda::with_type(problem().type, [&]<typename Element>(Element) {
            cuda::BiasSums<Element> task;
            task.diff = b.diff_dst.bytes(), task.to = to;
            task.rows = op_.filters, task.images = problem().batch;
            task.area = cuda::count_of(b.diff_dst) / (problem().batch * op_.filters);
            engine().run(cuda::LoopTask{task});
        });
    }

    Conv3d op_;
    std::shared_ptr<const Plan> plan_;
    Aligned aligned_;
    float* room_ = nullptr;
};

class Convolutions final : public Backend {
public:
    Convolutions(Engine& engine, std::string algorithm, Wanted wanted)
        : engine_(engine), algorithm_(std::move(algorithm)), wanted_(wanted) {}
    std::string_view name() const override { return "cudnn"; }
    std::string_view algorithm() const override { return algorithm_; }
    Accumulation accumulation() const override {
        return wanted_.rounding == Rounding::tf32 ? Accumulation::tf32 : Accumulation::f32;
    }
    std::int64_t workspace(const Op& /*op*/, std::int64_t /*batch*/) const override { return 0; }
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
        return std::make_unique<Convolution>(engine_, problem, found.plan);
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
        if (!std::holds_alternative<Conv2d>(problem.op) && !std::holds_alternative<Conv3d>(problem.op)) {
            return fmt::format("runs convolutions, not {}", kind_of(problem.op));
        }
        if (has_fused_relu(problem.op)) return "convolves without a fused ReLU: run the network with --fuse off";
        if (wanted_.rounding == Rounding::tf32 && problem.type != DataType::f32) {
            return "TF32 is how f32 is multiplied";
        }
        if (std::string reason = engine_.refusal(); !reason.empty()) return reason;
        return api().library.refusal();
    }

    // Finding a plan takes long: each is kept.
    const Found& planned(const Problem& problem, Bytes limit) const {
        const std::lock_guard lock{mutex_};
        Found& found = found_[fmt::format("{} within {}", to_string(problem), limit.value)];
        if (found.plan || !found.why.empty()) return found;
        ConvolutionGraph graph{problem.op, problem.pass, problem.batch, problem.type};
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

// Of any pass of an ordinary convolution: the numbers do not depend on its sizes.
std::int64_t engines(Engine& engine) {
    std::int64_t most = 0;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        ConvolutionGraph graph{Conv2d{8, 8, 8, 8, {}, 1, false}, pass, 1, DataType::f32};
        graph.attach(handle(engine));
        most = std::max(most, graph.engine_count());
    }
    return most;
}

}  // namespace

std::string refused_description(const Problem& problem) {
    try {
        const ConvolutionGraph described{problem.op, problem.pass, problem.batch, problem.type};
    } catch (const BackendError& error) {
        return error.what();
    }
    return {};
}

std::vector<std::unique_ptr<Backend>> convolutions(Engine& engine) {
    std::vector<std::unique_ptr<Backend>> all;
    const auto add = [&](const std::string& name, Wanted wanted) {
        all.push_back(std::make_unique<Convolutions>(engine, name, wanted));
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
