// SPDX-License-Identifier: Apache-2.0
// Which problems oneDNN takes, and the one place where its errors become ours.
#include "kernels/onednn/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/error.hpp"
#include "kernels/batchnorm.hpp"
#include "kernels/buffers.hpp"
#include "kernels/heads.hpp"
#include "kernels/onednn/plans.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/storage.hpp"
#include "kernels/support.hpp"
#include "kernels/transposed.hpp"

namespace rehearse::kernels::onednn {
namespace {

// What oneDNN has no primitive for is a copy or one short loop over memory, which the reference does as fast.
struct RunsReference {
    Pass pass;
    bool operator()(const Add& op) const { return pass != Pass::forward || op.inputs < 2; }
    bool operator()(const Concat&) const { return pass != Pass::forward; }
    template <typename O>
    bool operator()(const O&) const {
        return std::is_same_v<O, ChannelPad> || std::is_same_v<O, Dropout> || std::is_same_v<O, Flatten> ||
               std::is_same_v<O, SoftmaxLoss> || std::is_same_v<O, Bias> || std::is_same_v<O, SgdUpdate> ||
               std::is_same_v<O, Resize> || std::is_same_v<O, Embedding> || std::is_same_v<O, EmbeddingBag> ||
               std::is_same_v<O, Interaction> || std::is_same_v<O, SoftmaxTerms> || std::is_same_v<O, TermsLoss> ||
               std::is_same_v<O, ChannelSums> || std::is_same_v<O, DispatchTokens> || std::is_same_v<O, CombineTokens>;
    }
};

bool runs_reference(const Problem& problem) {
    return problem.pass == Pass::update || is_general(problem.op) ||
           std::visit(RunsReference{problem.pass}, problem.op);
}

// One dimension of a window that slides over `size` pixels and stops at `places`.
struct Sliding {
    std::int64_t size, places, kernel, stride, pad, dilation;

    bool touches(std::int64_t place) const {
        for (std::int64_t tap = 0; tap < kernel; ++tap) {
            const std::int64_t pixel = place * stride - pad + tap * dilation;
            if (pixel >= 0 && pixel < size) return true;
        }
        return false;
    }
    bool misses_somewhere() const {
        for (std::int64_t place = 0; place < places; ++place) {
            if (!touches(place)) return true;
        }
        return false;
    }
};

// A window can lie wholly in the padding, or its taps can jump over a small image: there oneDNN's largest value is the
// lowest float and its average 0 / 0.
bool has_empty_window(const Pool& op) {
    const Window& w = op.window;
    const Shape out = output_shape(Op{op});
    const std::int64_t depth = op.depth == 0 ? 1 : out[1];
    const std::array sides{
        Sliding{std::max<std::int64_t>(op.depth, 1), depth, w.kernel_d, w.stride_d, w.pad_front, w.dilation_d},
        Sliding{op.height, out[out.size() - 2], w.kernel_h, w.stride_h, w.pad_top, w.dilation_h},
        Sliding{op.width, out.back(), w.kernel_w, w.stride_w, w.pad_left, w.dilation_w}};
    return std::ranges::any_of(sides, &Sliding::misses_somewhere);
}

std::string refusal(const Op& op) {
    if (const auto* pool = std::get_if<Pool>(&op); pool != nullptr && has_empty_window(*pool)) {
        return "oneDNN's pooling gives no number for a window that holds no pixel";
    }
    if (const auto* norm = std::get_if<BatchNorm>(&op); norm != nullptr && norm->add) {
        return "oneDNN 2's batch normalization adds no shortcut";
    }
    if (const auto* norm = std::get_if<BatchNorm>(&op); norm != nullptr && norm->parts > 1) {
        return "oneDNN's batch normalization takes no sums of other ranks";
    }
    if (const auto* norm = std::get_if<BatchNorm>(&op); norm != nullptr && !norm->affine) {
        return "our batch normalization of oneDNN's has gamma and beta";
    }
    if (const auto* heads = std::get_if<Attention>(&op); heads != nullptr && !has_own_keys(*heads)) {
        return "our attention of oneDNN's products takes keys and values of each head's own";
    }
    if (std::holds_alternative<GroupedMatMul>(op)) return "oneDNN 2 has no grouped products";
    if (const auto* lrn = std::get_if<Lrn>(&op); lrn != nullptr && lrn->size % 2 == 0) {
        return fmt::format("oneDNN's LRN takes an odd size, not {}", lrn->size);
    }
    return {};
}

Program planned(const Problem& problem) {
    Program program;
    std::visit(
        [&](const auto& op) {
            if constexpr (requires { onednn::plan(program, op, problem.pass, problem.batch); }) {
                onednn::plan(program, op, problem.pass, problem.batch);
            } else {
                require(false, "an operator without a plan runs the reference");
            }
        },
        problem.op);
    return program;
}

// The one conversion of oneDNN's errors into ours.
template <typename Act>
auto converting_errors(const Op& op, Act act) {
    try {
        return act();
    } catch (const dnnl::error& error) {
        throw BackendError(fmt::format("oneDNN failed in {}: {}", to_string(op), error.what()));
    }
}

class PlannedKernel final : public Kernel {
public:
    PlannedKernel(const Problem& problem, std::int64_t workspace, Program program)
        : problem_(problem), sizes_(problem, workspace), program_(std::move(program)) {
        program_.reserve();
    }

    Bytes scratch() const override { return Bytes{static_cast<double>(program_.scratch_bytes())}; }

    void run(const Buffers& buffers) override {
        sizes_.check(buffers);
        const auto* norm = std::get_if<BatchNorm>(&problem_.op);
        const bool only_data = problem_.pass == Pass::backward_data && !gradients_together(problem_.op);
        if (only_data && !wants_input_gradient(buffers)) return;
        converting_errors(problem_.op, [&] { program_.run(buffers); });
        if (problem_.pass == Pass::forward && norm != nullptr) {
            update_running_statistics(*norm, problem_.batch, buffers);
        }
    }

private:
    Problem problem_;
    BufferSizes sizes_;
    Program program_;
};

std::string library_version() {
    const dnnl_version_t* const v = dnnl::version();
    return fmt::format("{}.{}.{} isa {:#x}", v->major, v->minor, v->patch,
                       static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
}

Program planned_convolution(const Problem& problem, ConvAlgorithm chosen) {
    Program program;
    plan(program, std::get<Conv>(problem.op), problem.pass, problem.batch, chosen);
    return program;
}

class Convolution final : public Backend {
public:
    Convolution(std::string_view algorithm, ConvAlgorithm chosen) : algorithm_(algorithm), chosen_(chosen) {}
    std::string_view name() const override { return "onednn"; }
    std::string_view algorithm() const override { return algorithm_; }

    Support supports(const Problem& problem) const override {
        if (Support any = supported_by_any(problem); !any.yes) return any;
        if (as_conv2d(problem.op) == nullptr) {
            return {.yes = false, .reason = fmt::format("{} runs conv2d, not {}", algorithm_, kind_of(problem.op))};
        }
        if (problem.type != DataType::f32) {
            return {.yes = false, .reason = fmt::format("{} takes f32, not {}", algorithm_, to_string(problem.type))};
        }
        if (problem.pass == Pass::update) return {};
        try {
            (void)planned_convolution(problem, chosen_);
        } catch (const dnnl::error& error) {
            return {.yes = false,
                    .reason = fmt::format("oneDNN has no {} kernel for it: {}", algorithm_, error.what())};
        }
        return {};
    }

    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        require_supported(*this, problem);
        if (problem.pass == Pass::update) return reference::backend().prepare(problem);
        return converting_errors(problem.op, [&]() -> std::unique_ptr<Kernel> {
            return std::make_unique<PlannedKernel>(problem, 0, planned_convolution(problem, chosen_));
        });
    }

    Bytes scratch(const Problem& problem, Bytes /*limit*/) const override {
        if (problem.pass == Pass::update) return {};
        return converting_errors(problem.op, [&] {
            return Bytes{static_cast<double>(planned_convolution(problem, chosen_).scratch_bytes())};
        });
    }

    std::int64_t workspace(const Op& /*op*/, std::int64_t /*batch*/) const override { return 0; }

private:
    std::string_view algorithm_;
    ConvAlgorithm chosen_;
};

class OneDnn final : public Backend {
public:
    std::string_view name() const override { return "onednn"; }

    Support supports(const Problem& problem) const override {
        if (Support any = supported_by_any(problem); !any.yes) return any;
        if (is_mirrored(problem)) return supports(mirrored_problem(problem));
        if (runs_reference(problem)) return {};
        if (const std::string reason = refusal(problem.op); !reason.empty()) return {.yes = false, .reason = reason};
        try {
            (void)planned(problem);  // oneDNN caches what it generates: prepare will not generate it again
        } catch (const dnnl::error& error) {
            return {.yes = false, .reason = fmt::format("oneDNN has no kernel for it: {}", error.what())};
        }
        return {};
    }

    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        require_supported(*this, problem);
        if (is_mirrored(problem)) {
            auto kernel = transposed(in_f32(problem), prepare(mirrored_problem(in_f32(problem))));
            return problem.type == DataType::f32 ? std::move(kernel) : stored_as(problem, 0, std::move(kernel));
        }
        if (runs_reference(problem)) return reference::backend().prepare(problem);
        return converting_errors(problem.op, [&]() -> std::unique_ptr<Kernel> {
            const Problem computed = in_f32(problem);
            const std::int64_t kept = workspace(problem.op, problem.batch);
            auto kernel = std::make_unique<PlannedKernel>(computed, kept, planned(computed));
            if (problem.type == DataType::f32) return kernel;
            return stored_as(problem, kept, std::move(kernel));
        });
    }

    Bytes scratch(const Problem& problem, Bytes /*limit*/) const override {
        if (problem.type != DataType::f32) return staged(problem) + scratch(in_f32(problem), any_scratch);
        if (is_mirrored(problem)) return scratch(mirrored_problem(problem), any_scratch);
        if (runs_reference(problem)) return {};
        return converting_errors(problem.op,
                                 [&] { return Bytes{static_cast<double>(planned(problem).scratch_bytes())}; });
    }

    std::string version() const override { return library_version(); }

    std::int64_t workspace(const Op& op, std::int64_t batch) const override {
        const auto floats = [](std::size_t bytes) {
            return static_cast<std::int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
        };
        if (!refusal(op).empty()) return 0;
        return converting_errors(op, [&] {
            if (const auto* pool = std::get_if<Pool>(&op)) return floats(workspace_bytes(*pool, batch));
            if (const auto* lrn = std::get_if<Lrn>(&op)) return floats(workspace_bytes(*lrn, batch));
            if (const auto* attention = std::get_if<Attention>(&op)) return floats(workspace_bytes(*attention, batch));
            return reference::backend().workspace(op, batch);
        });
    }
};

}  // namespace

const Backend& backend() {
    static const OneDnn onednn;
    return onednn;
}

std::span<const Backend* const> convolutions() {
    static const Convolution direct("direct", ConvAlgorithm::direct), gemm("gemm", ConvAlgorithm::gemm),
        winograd("winograd", ConvAlgorithm::winograd);
    static const std::array<const Backend*, 3> all{&direct, &gemm, &winograd};
    return all;
}

}  // namespace rehearse::kernels::onednn
