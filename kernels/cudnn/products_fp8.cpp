// SPDX-License-Identifier: Apache-2.0
// Dense layers of 16-bit tensors by cuBLASLt's products of 8-bit factors: each factor is scaled by its largest number,
// rounded and laid row by row, then multiplied. Only by name: it rounds far more than 16 bits do.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"
#include "kernels/cudnn/backends.hpp"
#include "kernels/cudnn/lt.hpp"
#include "kernels/support.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;

constexpr std::size_t whole_vectors = 16;  // bytes where cuBLASLt's 8-bit products begin

bool is_whole(const void* begin) { return reinterpret_cast<std::uintptr_t>(begin) % whole_vectors == 0; }

/// With the bias in the epilogue where it begins at 16 bytes, and without.
struct Fp8Plan {
    Fp8Product described;
    Pass pass;
    LtProduct with_bias, plain;
    LtAlgorithm with_bias_by, plain_by;
    std::size_t workspace() const { return std::max(with_bias_by.workspace, plain_by.workspace); }
};

/// Where everything of a product lies in scratch memory, in floats from whole 256 bytes on.
struct Fp8Room {
    std::int64_t a = 0, b = 0, magnitudes = 0, inverses = 0, made = 0, workspace = 0, all = 0;
    explicit Fp8Room(const Fp8Plan& plan) {
        const auto next = [this](std::int64_t bytes) {
            const std::int64_t begin = all;
            all += cuda::divide_up(bytes, 256) * 64;
            return begin;
        };
        const Fp8Product& p = plan.described;
        a = next(p.a.bytes()), b = next(p.b.bytes());
        magnitudes = next(2 * cuda::fp8_parts * std::int64_t{sizeof(float)}), inverses = next(256);
        // Gradients of weights lie behind one another, at any multiple of two bytes.
        made = next(plan.pass == Pass::backward_weights ? 2 * p.m * p.n : 0);
        workspace = next(static_cast<std::int64_t>(plan.workspace()));
    }
};

class Fp8Dense final : public cuda::DeviceKernel {
public:
    Fp8Dense(Engine& engine, const Problem& problem, std::shared_ptr<const Fp8Plan> plan)
        : DeviceKernel(engine, problem),
          op_(std::get<MatMul>(problem.op)),
          plan_(std::move(plan)),
          at_(*plan_),
          room_(reserve(at_.all)) {}

private:
    void compute(const Buffers& b) override {
        const Fp8Product& p = plan_->described;
        round(p.a, b, 0, at_.a);
        round(p.b, b, 1, at_.b);
        void* const asked = result(problem().pass, b);
        const bool moved = !is_whole(asked);
        if (moved && problem().pass != Pass::backward_weights)
            throw BackendError("8-bit products are of tensors that begin at whole 16 bytes");
        void* const made = moved ? static_cast<void*>(room_ + at_.made) : asked;
        const std::int64_t count = op_.k * op_.n;
        void* bias = nullptr;
        if (p.bias == BiasPart::added) bias = cuda::offset(const_cast<void*>(b.weights.bytes()), count, problem().type);
        const bool in_epilogue = bias != nullptr && is_whole(bias);
        const LtProduct& product = in_epilogue ? plan_->with_bias : plan_->plain;
        product.scale_by(room_ + at_.inverses, room_ + at_.inverses + 1);
        product.multiply(engine(), in_epilogue ? plan_->with_bias_by : plan_->plain_by, room_ + at_.a, room_ + at_.b,
                         made, in_epilogue ? bias : nullptr, room_ + at_.workspace);
        if (moved) {
            auto copy = cuda::points<cuda::CopyRuns>(p.m * p.n);
            copy.from = {made, problem().type}, copy.to = {asked, problem().type}, copy.length = p.m * p.n;
            engine().run(cuda::PointTask{copy});
        }
        if (bias != nullptr && !in_epilogue) cuda::add_bias(engine(), problem(), b, count);
        if (p.bias == BiasPart::summed) cuda::sum_bias(engine(), problem(), b, count);
    }
    void round(const Fp8Factor& of, const Buffers& b, int which, std::int64_t to) {
        cuda::ToFp8 task;
        task.from = {const_cast<void*>(factor(of.which, b)), problem().type};
        task.to = reinterpret_cast<std::uint8_t*>(room_ + to), task.inverse = room_ + at_.inverses + which;
        task.lines = of.lines, task.length = of.length, task.pitch = of.pitch;
        task.format = of.format, task.turned = of.turned;
        cuda::run_to_fp8(engine(), task, room_ + at_.magnitudes + which * cuda::fp8_parts);
    }

    MatMul op_;
    std::shared_ptr<const Fp8Plan> plan_;
    Fp8Room at_;
    float* room_;
};

class Fp8Products final : public Backend {
public:
    Fp8Products(Engine& engine, Fp8Sums sums) : engine_(engine), sums_(sums) {}
    std::string_view name() const override { return "cublaslt"; }
    std::string_view algorithm() const override { return sums_ == Fp8Sums::fast ? "fp8-fast" : "fp8"; }
    std::string version() const override { return engine_.version(); }
    std::int64_t workspace(const Op& /*op*/, std::int64_t /*batch*/) const override { return 0; }
    Support supports(const Problem& problem) const override {
        if (Support any = supported_by_any(problem); !any.yes) return any;
        if (std::string why = product_refusal(engine_, problem, false); !why.empty()) return {false, why};
        if (std::string why = fp8_refusal(problem); !why.empty()) return {false, why};
        if (engine_.capability() < 89) return {false, "8-bit products need compute capability 8.9"};
        if (!lt_refusal().empty()) return {false, lt_refusal()};
        if (problem.pass == Pass::update) return {};
        const Found& found = planned(problem, any_scratch);
        return found.plan ? Support{} : Support{false, found.why};
    }
    Bytes scratch(const Problem& problem, Bytes limit) const override {
        if (problem.pass == Pass::update) return {};
        const Found& found = planned(problem, limit);
        return found.plan ? Bytes{static_cast<double>(Fp8Room{*found.plan}.all) * sizeof(float)} : any_scratch;
    }
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        return prepare_within(problem, any_scratch);
    }
    std::unique_ptr<Kernel> prepare_within(const Problem& problem, Bytes limit) const override {
        require_supported(*this, problem);
        if (problem.pass == Pass::update) return cuda::layer_kernel(engine_, problem, 0);
        const Found& found = planned(problem, limit);
        if (!found.plan) throw BackendError(fmt::format("cuBLASLt cannot run {}: {}", to_string(problem), found.why));
        return std::make_unique<Fp8Dense>(engine_, problem, found.plan);
    }

private:
    struct Found {
        std::shared_ptr<const Fp8Plan> plan;
        std::string why;
    };
    const Found& planned(const Problem& problem, Bytes limit) const {
        const std::lock_guard lock{mutex_};
        Found& found = found_[fmt::format("{} within {}", to_string(problem), limit.value)];
        if (found.plan || !found.why.empty()) return found;
        const Fp8Product p = fp8_product(std::get<MatMul>(problem.op), problem.pass, problem.batch);
        const LtProduct with_bias{p, problem.type, sums_, true}, plain{p, problem.type, sums_, false};
        const auto first = with_bias.algorithms(whole_vectors, limit, 1, found.why);
        const auto second = plain.algorithms(whole_vectors, limit, 1, found.why);
        if (!first.empty() && !second.empty())
            found.plan =
                std::make_shared<Fp8Plan>(Fp8Plan{p, problem.pass, with_bias, plain, first.front(), second.front()});
        return found;
    }

    Engine& engine_;
    Fp8Sums sums_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, Found> found_;
};

}  // namespace

std::string refused_fp8(const Problem& problem) {
    try {
        const Fp8Product p = fp8_product(std::get<MatMul>(problem.op), problem.pass, problem.batch);
        const LtProduct told{p, problem.type, Fp8Sums::fast, true};
        told.scale_by(nullptr, nullptr);
    } catch (const BackendError& error) {
        return error.what();
    }
    return {};
}

std::vector<std::unique_ptr<Backend>> products_fp8(Engine& engine) {
    std::vector<std::unique_ptr<Backend>> all;
    for (const Fp8Sums sums : {Fp8Sums::promoted, Fp8Sums::fast})
        all.push_back(std::make_unique<Fp8Products>(engine, sums));
    return all;
}

}  // namespace rehearse::kernels::cudnn
