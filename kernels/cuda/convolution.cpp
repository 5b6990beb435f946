// SPDX-License-Identifier: Apache-2.0
// Which problems our convolutions take, and why not the others.
#include "kernels/cuda/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/support.hpp"
#include "kernels/transposed.hpp"

namespace rehearse::kernels::cuda {
namespace {

constexpr double largest_index = std::numeric_limits<std::int32_t>::max();

std::string refuse_all_but_sums(const Problem& problem) {
    const auto* dense = std::get_if<MatMul>(&problem.op);
    if (dense == nullptr && !std::holds_alternative<Conv>(problem.op)) {
        return fmt::format("runs convolutions and products, not {}", kind_of(problem.op));
    }
    if (dense != nullptr && dense->activation) {
        return "the GPU multiplies without a fused activation: run the network with --fuse off";
    }
    if (has_fused_relu(problem.op)) return "the GPU convolves without a fused ReLU: run the network with --fuse off";
    const Conv op = volume(problem.op);
    const double image = static_cast<double>(elements(input_shapes(Op{op})[0]));
    const double output = static_cast<double>(elements(output_shape(Op{op})));
    const double all = static_cast<double>(weight_count(op)), number = static_cast<double>(images(problem));
    const double pixels = std::max(image / static_cast<double>(op.channels), output / static_cast<double>(op.filters));
    if (std::max({image, output, all, number * pixels}) > largest_index) {
        return "there are more than 2^31 pixels, or elements of an image, of its output or of the weights";
    }
    if (op.groups > most_blocks) return fmt::format("there are more than {} groups", most_blocks);
    const Window& w = op.window;
    const std::int64_t reach = std::max({(w.kernel_d - 1) * w.dilation_d, (w.kernel_h - 1) * w.dilation_h,
                                         (w.kernel_w - 1) * w.dilation_w, w.pad_front, w.pad_top, w.pad_left});
    if (reach > std::numeric_limits<std::int16_t>::max()) return "the window reaches beyond 2^15 pixels";
    return {};
}

class Algorithm : public Backend {
public:
    Algorithm(Engine& engine, std::string_view name) : engine_(engine), name_(name) {}
    std::string_view name() const final { return "cuda"; }
    std::string_view algorithm() const final { return name_; }
    std::int64_t workspace(const Op& /*op*/, std::int64_t /*batch*/) const final { return 0; }
    std::string version() const final { return engine_.version(); }
    Support supports(const Problem& problem) const final {
        if (Support support = supported_by_any(problem); !support.yes) return support;
        if (std::holds_alternative<ConvTranspose>(problem.op) && mirrors()) return supports(mirrored_problem(problem));
        std::string reason = engine_.refusal();
        if (reason.empty()) reason = refuse_all_but_sums(problem);
        if (reason.empty() && problem.pass != Pass::update) reason = refusal(problem);
        if (!reason.empty()) return {.yes = false, .reason = reason};
        return {};
    }
    std::unique_ptr<Kernel> prepare(const Problem& problem) const final {
        require_supported(*this, problem);
        if (problem.pass == Pass::update) return layer_kernel(engine_, problem, 0);
        if (is_mirrored(problem)) return transposed_kernel(engine_, problem, make(mirrored_problem(problem)));
        return make(problem);
    }
    Bytes scratch(const Problem& problem, Bytes /*limit*/) const final {
        if (problem.pass == Pass::update) return {};
        return size_of(DataType::f32) *
               static_cast<double>(room(is_mirrored(problem) ? mirrored_problem(problem) : problem));
    }

protected:
    Engine& engine() const { return engine_; }

private:
    virtual std::string refusal(const Problem& problem) const = 0;
    virtual std::unique_ptr<Kernel> make(const Problem& problem) const = 0;
    virtual std::int64_t room(const Problem& /*problem*/) const { return 0; }  // floats
    virtual bool mirrors() const { return true; }  // runs a transposed convolution as the one that it mirrors

    Engine& engine_;
    std::string_view name_;
};

class Direct final : public Algorithm {
public:
    explicit Direct(Engine& engine) : Algorithm(engine, "direct") {}

private:
    std::string refusal(const Problem& problem) const override {
        if (problem.pass == Pass::backward_weights) return "direct has no backward_weights: gemm splits its pixels";
        const Conv op = volume(problem.op);
        const std::int64_t rows = problem.pass == Pass::forward ? op.filters : op.channels;
        if (rows / op.groups > most_blocks * DirectConvolution<float>::at_once)
            return fmt::format("direct makes at most {} channels of a group",
                               most_blocks * DirectConvolution<float>::at_once);
        return {};
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        return sums_kernel(engine(), problem, true, Cores::ordinary);
    }
};

// Implicit GEMM. 16-bit types on tensor cores; f32 on them only where TF32 was asked for by name.
class Gemm final : public Algorithm {
public:
    Gemm(Engine& engine, bool tf32) : Algorithm(engine, tf32 ? "tensor-tf32" : "gemm"), tf32_(tf32) {}
    Accumulation accumulation() const override { return tf32_ ? Accumulation::tf32 : Accumulation::f32; }

private:
    std::int64_t room(const Problem& problem) const override {
        return problem.pass == Pass::backward_weights ? weights_scratch(problem, engine().processors()) : 0;
    }
    std::string refusal(const Problem& problem) const override {
        if (tf32_ && problem.type != DataType::f32) return "TF32 is how f32 is multiplied: gemm runs 16-bit types";
        if ((tf32_ || problem.type == DataType::bf16) && engine().capability() < 80) {
            return fmt::format("{} needs compute capability 8.0, this is {}.{}", tf32_ ? "TF32" : "bf16",
                               engine().capability() / 10, engine().capability() % 10);
        }
        return {};
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        const Cores cores = tf32_ || problem.type != DataType::f32 ? Cores::tensor : Cores::ordinary;
        if (problem.pass == Pass::backward_weights) return weights_kernel(engine(), problem, cores);
        return sums_kernel(engine(), problem, false, cores);
    }
    bool tf32_;
};

// Implicit GEMM of channels that lie together, so that they are copied by vectors and some steps ahead: they are laid
// so first, or tensors are channels last.
class Packed final : public Algorithm {
public:
    Packed(Engine& engine, std::string_view name, Packing packing) : Algorithm(engine, name), packing_(packing) {}

private:
    std::int64_t room(const Problem& problem) const override {
        return problem.pass == Pass::backward_weights ? packed_weights_scratch(problem, engine().processors())
                                                      : packed_scratch(problem, packing_.channels_last);
    }
    bool mirrors() const override { return !packing_.channels_last; }
    std::string refusal(const Problem& problem) const override {
        if (problem.type == DataType::f32) return "lays 16-bit numbers only";
        if (std::holds_alternative<MatMul>(problem.op))
            return "runs convolutions: a product's factors lie as they should";
        const bool weights = problem.pass == Pass::backward_weights;
        if (weights && (!packing_.channels_last || packing_.by_warpgroups))
            return "has no backward_weights: pixels do not lie together where taps begin";
        const Conv op = volume(problem.op);
        const std::int64_t channels = op.channels / op.groups, filters = op.filters / op.groups;
        const std::int64_t summed = problem.pass == Pass::backward_data ? filters : channels;
        if ((op.groups > 1 || weights) && summed % 8 != 0)
            return fmt::format("a group's {} channels are no whole vectors", summed);
        if (weights && filters % 8 != 0) return fmt::format("a group's {} filters are no whole vectors", filters);
        if (!packing_.channels_last && images(problem) > most_blocks)
            return fmt::format("lays at most {} images", most_blocks);
        if (engine().capability() < 80) return "copies to shared memory as from sm_80 on";
        return packing_.by_warpgroups ? engine().warpgroup_refusal() : std::string{};
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        if (problem.pass == Pass::backward_weights) return packed_weights_kernel(engine(), problem);
        return packed_kernel(engine(), problem, packing_);
    }
    Packing packing_;
};

class Winograd final : public Algorithm {
public:
    Winograd(Engine& engine, int m) : Algorithm(engine, m == 2 ? "winograd2" : "winograd4"), m_(m) {}

private:
    std::int64_t room(const Problem& problem) const override {
        return winograd_scratch(problem, m_, engine().processors());
    }
    std::string refusal(const Problem& problem) const override {
        const Conv* op = as_conv2d(problem.op);
        if (op == nullptr) return "Winograd runs 2-D convolutions only";
        const Window& w = op->window;
        if (w.kernel_h != 3 || w.kernel_w != 3) {
            return fmt::format("Winograd needs a 3 x 3 kernel, not {} x {}", w.kernel_h, w.kernel_w);
        }
        if (w.stride_h != 1 || w.stride_w != 1) return "Winograd needs stride 1";
        if (w.dilation_h != 1 || w.dilation_w != 1) return "Winograd needs dilation 1";
        if (op->groups != 1) return fmt::format("Winograd needs one group, not {}", op->groups);
        const WinogradShape s = winograd_shape(*op, problem.pass, problem.batch, m_);
        if (static_cast<double>(std::max(s.channels, s.filters)) * static_cast<double>(s.tiles()) > largest_index) {
            return "the transformed images have more than 2^31 elements a point";
        }
        return {};
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        return winograd_kernel(engine(), problem, m_);
    }
    int m_;
};

class Fft final : public Algorithm {
public:
    explicit Fft(Engine& engine) : Algorithm(engine, "fft") {}

private:
    std::int64_t room(const Problem& problem) const override {
        return fft_scratch(std::get<Conv>(problem.op), problem.batch);
    }
    std::string refusal(const Problem& problem) const override {
        const Conv* op = as_conv2d(problem.op);
        if (op == nullptr) return "fft runs 2-D convolutions only";
        if (op->window.stride_h != 1 || op->window.stride_w != 1) return "fft needs stride 1";
        if (op->groups != 1) return fmt::format("fft needs one group, not {}", op->groups);
        return engine().fft_refusal();
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override { return fft_kernel(engine(), problem); }
};

}  // namespace

std::vector<std::unique_ptr<Backend>> convolutions(Engine& engine) {
    std::vector<std::unique_ptr<Backend>> all;
    all.push_back(std::make_unique<Gemm>(engine, false));
    all.push_back(std::make_unique<Winograd>(engine, 2));
    all.push_back(std::make_unique<Winograd>(engine, 4));
    all.push_back(std::make_unique<Packed>(engine, "packed", Packing{}));
    all.push_back(std::make_unique<Packed>(engine, "wgmma", Packing{.by_warpgroups = true}));
    all.push_back(std::make_unique<Direct>(engine));
    all.push_back(std::make_unique<Fft>(engine));
    all.push_back(std::make_unique<Gemm>(engine, true));
    return all;
}

std::vector<std::unique_ptr<Backend>> channels_last_convolutions(Engine& engine) {
    std::vector<std::unique_ptr<Backend>> all;
    all.push_back(std::make_unique<Packed>(engine, "nhwc-packed", Packing{.channels_last = true}));
    all.push_back(std::make_unique<Packed>(engine, "nhwc-wgmma", Packing{true, true}));
    return all;
}

}  // namespace rehearse::kernels::cuda
