// SPDX-License-Identifier: Apache-2.0
#include "bench/workload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "core/error.hpp"

namespace rehearse::bench {

namespace {

constexpr std::size_t line = 16;  // floats of a cache line

std::size_t rounded(std::int64_t count) { return (static_cast<std::size_t>(count) + line - 1) / line * line; }

std::int64_t weight_count(const Op& op) {
    const auto* update = std::get_if<SgdUpdate>(&op);
    return update != nullptr ? update->count : parameters(op);
}

// In floats.
std::int64_t second_level_cache() {
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return (bytes > 0 ? bytes : 1 << 20) / static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

Arena::Arena(std::int64_t floats, std::uint64_t seed) : random_(rounded(floats)), scratch_(rounded(floats)) {
    std::minstd_rand engine(static_cast<std::uint_fast32_t>(seed));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& value : random_) value = uniform(engine);
}

void Arena::reset() { next_random_ = next_scratch_ = 0; }

void Arena::clear() { std::ranges::fill(scratch_, 0.0F); }

std::span<float> Arena::last(std::int64_t count) {
    return std::span{random_}.last(std::min(static_cast<std::size_t>(count), random_.size()));
}

std::span<float> Arena::take(std::vector<float>& from, std::size_t& next, std::int64_t count) {
    require(next + rounded(count) <= from.size(), "the arena holds all sets of buffers");
    const std::span<float> taken{from.data() + next, static_cast<std::size_t>(count)};
    next += rounded(count);
    return taken;
}

Workload::Workload(const Problem& problem, const kernels::Choice& choice, CacheState state, Bytes limit)
    : problem_(problem), backend_(choice.backend), state_(state) {
    kernel_ = kernels::prepare(choice, problem, limit);
    const bool backward = problem.pass == Pass::backward_data || problem.pass == Pass::backward_weights;
    // A backward pass takes random numbers for the forward output, but not for what the backend kept for itself.
    if (backward && backend_->workspace(problem.op, problem.batch) > 0)
        forward_ = kernels::prepare(choice, {problem.op, Pass::forward, problem.batch, problem.type}, limit);
}

std::string Workload::name() const {
    return fmt::format("{}/{}{}{}", to_string(problem_), backend_->name(), backend_->algorithm().empty() ? "" : "/",
                       backend_->algorithm());
}

// An upper bound for either half of the arena, cache lines included.
std::int64_t Workload::floats() const {
    std::size_t sum = 3 * rounded(weight_count(problem_.op));
    if (problem_.pass == Pass::update) return static_cast<std::int64_t>(sum);
    for (const Shape& shape : input_shapes(problem_.op)) sum += rounded(problem_.batch * elements(shape));
    sum += 2 * rounded(problem_.batch * elements(output_shape(problem_.op)));  // dst_in, diff_dst
    sum += rounded(backend_->workspace(problem_.op, problem_.batch));
    return static_cast<std::int64_t>(sum);
}

std::span<std::int32_t> Workload::make_labels() {
    const auto* loss = std::get_if<SoftmaxLoss>(&problem_.op);
    if (loss == nullptr) return {};
    labels_.resize(static_cast<std::size_t>(problem_.batch));
    for (std::size_t i = 0; i < labels_.size(); ++i) {
        labels_[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % loss->classes);
    }
    return labels_;
}

kernels::Buffers Workload::make_buffers(Arena& arena) {
    kernels::Buffers buffers;
    const std::int64_t weights = weight_count(problem_.op);
    if (problem_.pass == Pass::update) {
        const auto values = arena.random(weights);
        buffers.diff_weights = arena.random(weights);
        buffers.weights = arena.scratch(weights);
        buffers.momentum = arena.scratch(weights);
        std::ranges::copy(values, buffers.weights.begin());
        std::ranges::copy(values, buffers.momentum.begin());
        produced_.emplace_back();       // the gradients of a bucket are older than any cache
        buffers.learning_rate = 1e-6F;  // weights hardly move, however long it is timed
        buffers.momentum_factor = 0.9F;
        return buffers;
    }
    std::span<float> first_src;
    for (const Shape& shape : input_shapes(problem_.op)) {
        const auto src = arena.random(problem_.batch * elements(shape));
        if (first_src.empty()) first_src = src;
        buffers.src.emplace_back(src);
        buffers.diff_src.push_back(arena.scratch(problem_.batch * elements(shape)));
    }
    const std::int64_t outputs = problem_.batch * elements(output_shape(problem_.op));
    const auto diff_dst = arena.random(outputs);
    buffers.diff_dst = diff_dst;
    buffers.dst = arena.scratch(outputs);
    buffers.dst_in = arena.random(outputs);
    buffers.weights = arena.random(weights);
    buffers.diff_weights = arena.scratch(weights);
    buffers.workspace = arena.scratch(backend_->workspace(problem_.op, problem_.batch));
    buffers.labels = make_labels();
    buffers.loss_batch = problem_.batch;
    produced_.push_back(problem_.pass == Pass::forward ? first_src : diff_dst);
    return buffers;
}

void Workload::set_up(Arena& arena, std::int64_t working_set) {
    arena.reset();
    sets_.clear();
    produced_.clear();
    const std::int64_t sets = state_ == CacheState::hot ? 1 : std::clamp<std::int64_t>(working_set / floats(), 1, 4096);
    for (std::int64_t i = 0; i < sets; ++i) {
        sets_.push_back(make_buffers(arena));
        if (forward_) forward_->run(sets_.back());
    }
    others_ = arena.last(std::min(working_set, second_level_cache()));
    next_ = 0;
}

void Workload::before() {
    next_ = (next_ + 1) % sets_.size();
    if (state_ != CacheState::primed) return;
    // Flipping signs touches every value and keeps their distribution.
    for (float& value : others_) value = -value;
    for (float& value : produced_[next_]) value = -value;
}

void Workload::run() { kernel_->run(sets_[next_]); }

}  // namespace rehearse::bench
