// SPDX-License-Identifier: Apache-2.0
// Dense layers by cuBLASLt: the algorithm that its heuristics put first, or each of the next by its number; the bias
// and its gradient in the product's epilogue.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "core/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/typed.hpp"
#include "kernels/cudnn/backends.hpp"
#include "kernels/cudnn/lt.hpp"
#include "kernels/support.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;

constexpr std::size_t whole_vectors = 16;  // bytes where tensors must begin for the fast algorithms

/// With the bias in the epilogue where everything begins at 16 bytes; else by what runs anywhere, and a task of ours.
struct Ways {
    LtProduct aligned, anywhere;
    LtAlgorithm aligned_by, anywhere_by;
    std::size_t workspace() const { return std::max(aligned_by.workspace, anywhere_by.workspace); }
};

class LtDense final : public cuda::DeviceKernel {
public:
    LtDense(Engine& engine, const Problem& problem, std::shared_ptr<const Ways> ways)
        : DeviceKernel(engine, problem), op_(std::get<MatMul>(problem.op)), ways_(std::move(ways)) {
        if (ways_->workspace() > 0) room_ = reserve(static_cast<std::int64_t>((ways_->workspace() + 3) / 4));
    }

private:
    void compute(const Buffers& b) override {
        const Product& p = ways_->aligned.described();
        const std::int64_t count = op_.k * op_.n;
        const void *const left = factor(p.a, b), *const right = factor(p.b, b);
        void* const made = result(problem().pass, b);
        void* bias = nullptr;
        if (p.bias == BiasPart::added) bias = cuda::offset(const_cast<void*>(b.weights.bytes()), count, problem().type);
        if (p.bias == BiasPart::summed) bias = cuda::offset(b.diff_weights.bytes(), count, problem().type);
        const auto is_whole = [](const void* begin) {
            return reinterpret_cast<std::uintptr_t>(begin) % whole_vectors == 0;
        };
        if (is_whole(left) && is_whole(right) && is_whole(made) && is_whole(bias)) {
            return ways_->aligned.multiply(engine(), ways_->aligned_by, left, right, made, bias, room_);
        }
        ways_->anywhere.multiply(engine(), ways_->anywhere_by, left, right, made, nullptr, room_);
        if (p.bias == BiasPart::added) cuda::add_bias(engine(), problem(), b, count);
        if (p.bias == BiasPart::summed) cuda::sum_bias(engine(), problem(), b, count);
    }

    MatMul op_;
    std::shared_ptr<const Ways> ways_;
    float* room_ = nullptr;
};

class LtProducts final : public Backend {
public:
    LtProducts(Engine& engine, std::string algorithm, bool tf32, int which)
        : engine_(engine), algorithm_(std::move(algorithm)), tf32_(tf32), which_(which) {}
    std::string_view name() const override { return "cublaslt"; }
    std::string_view algorithm() const override { return algorithm_; }
    Accumulation accumulation() const override { return tf32_ ? Accumulation::tf32 : Accumulation::f32; }
    std::string version() const override { return engine_.version(); }
    std::int64_t workspace(const Op& /*op*/, std::int64_t /*batch*/) const override { return 0; }
    Support supports(const Problem& problem) const override {
        if (Support any = supported_by_any(problem); !any.yes) return any;
        if (std::string why = product_refusal(engine_, problem, tf32_); !why.empty()) return {false, why};
        if (!lt_refusal().empty()) return {false, lt_refusal()};
        if (problem.pass == Pass::update) return {};
        const Found& found = ways(problem, any_scratch);
        return found.ways ? Support{} : Support{false, found.why};
    }
    Bytes scratch(const Problem& problem, Bytes limit) const override {
        if (problem.pass == Pass::update) return {};
        const Found& found = ways(problem, limit);
        return found.ways ? Bytes{static_cast<double>(found.ways->workspace())} : any_scratch;
    }
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        return prepare_within(problem, any_scratch);
    }
    std::unique_ptr<Kernel> prepare_within(const Problem& problem, Bytes limit) const override {
        require_supported(*this, problem);
        if (problem.pass == Pass::update) return cuda::layer_kernel(engine_, problem, 0);
        const Found& found = ways(problem, limit);
        if (!found.ways) throw BackendError(fmt::format("cuBLASLt cannot run {}: {}", to_string(problem), found.why));
        return std::make_unique<LtDense>(engine_, problem, found.ways);
    }

private:
    struct Found {
        std::shared_ptr<const Ways> ways;
        std::string why;
    };
    const Found& ways(const Problem& problem, Bytes limit) const {
        const std::lock_guard lock{mutex_};
        Found& found = found_[fmt::format("{} within {}", to_string(problem), limit.value)];
        if (found.ways || !found.why.empty()) return found;
        const LtProduct aligned{problem, tf32_, true}, anywhere{problem, tf32_, false};
        const auto element = static_cast<std::size_t>(size_of(problem.type).value);
        const auto best = aligned.algorithms(whole_vectors, limit, which_ + 1, found.why);
        const auto any = anywhere.algorithms(element, limit, 1, found.why);
        if (best.empty() || any.empty()) return found;
        if (static_cast<int>(best.size()) <= which_) {
            found.why = fmt::format("cuBLASLt proposes {} algorithms", best.size());
            return found;
        }
        found.ways = std::make_shared<Ways>(Ways{aligned, anywhere, best.back(), any.front()});
        return found;
    }

    Engine& engine_;
    std::string algorithm_;
    bool tf32_;
    int which_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, Found> found_;
};

}  // namespace

std::vector<std::unique_ptr<Backend>> products_lt(Engine& engine) {
    constexpr int most = 8;
    std::vector<std::unique_ptr<Backend>> all;
    const auto add = [&](const std::string& name, bool tf32, int which) {
        all.push_back(std::make_unique<LtProducts>(engine, name, tf32, which));
    };
    add("heuristic", false, 0);
    add("tensor-tf32", true, 0);
    if (!engine.refusal().empty()) return all;
    for (int i = 1; i < most; ++i) {  // 0 is the heuristics' first
        add(fmt::format("algorithm{}", i), false, i);
        add(fmt::format("tf32-algorithm{}", i), true, i);
    }
    return all;
}

}  // namespace rehearse::kernels::cudnn
