// SPDX-License-Identifier: Apache-2.0
#include "bench/workload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.hpp"
#include "core/op_general_visitors.hpp"
#include "kernels/convert.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::bench {

namespace {

constexpr std::size_t line = 16;  // floats of a cache line

// Whole cache lines.
std::size_t floats_of(std::int64_t count, DataType type) {
    const std::size_t floats = type == DataType::f32 ? count : (count + 1) / 2;
    return (floats + line - 1) / line * line;
}

std::int64_t weight_count(const Op& op) { return updated(op).value_or(weights_read(op)); }

// In floats.
std::int64_t second_level_cache() {
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return (bytes > 0 ? bytes : 1 << 20) / static_cast<std::int64_t>(sizeof(float));
}

template <typename Half>
void flip_halves(std::span<Half> values) {
    for (Half& value : values) value.bits ^= 0x8000;
}

// Floats after which random values come again: kernels take as long, and drawing each of some 100 million took seconds.
// Odd, so that rows of a power of two are not alike; each time from another place on, so that no two operands are.
constexpr std::size_t random_period = (1 << 20) - 3, random_turn = 350377;

// Touches every value and keeps their distribution.
void flip_signs(kernels::View values) {
    if (values.type() == DataType::f16) return flip_halves(values.as<Float16>());
    if (values.type() == DataType::bf16) return flip_halves(values.as<BFloat16>());
    for (float& value : values) value = -value;
}

}  // namespace

Arena::Arena(std::int64_t floats, std::uint64_t seed)
    : random_(floats_of(floats, DataType::f32)), scratch_(random_.size()) {
    std::minstd_rand engine(static_cast<std::uint_fast32_t>(seed));
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto drawn = std::span{random_}.first(std::min(random_.size(), random_period));
    for (float& value : drawn) value = uniform(engine);
    for (std::size_t i = random_period; i < random_.size(); ++i)
        random_[i] = random_[(i + i / random_period * random_turn) % random_period];
}

void Arena::reset() { next_random_ = next_scratch_ = 0; }

void Arena::clear() { std::ranges::fill(scratch_, 0.0F); }

std::span<float> Arena::last(std::int64_t floats) {
    return std::span{random_}.last(std::min(static_cast<std::size_t>(floats), random_.size()));
}

kernels::View Arena::random_of(DataType type) {
    const auto rounded = [&](auto& halves) -> kernels::View {
        if (halves.empty()) {
            halves.resize(2 * random_.size());
            const auto first = std::span(halves).first(random_.size());
            const auto second = std::span(halves).last(random_.size());
            kernels::convert(std::span<const float>(random_), kernels::View(first));
            const std::size_t turn = random_turn % random_.size();
            std::ranges::rotate_copy(first, first.begin() + static_cast<std::ptrdiff_t>(turn), second.begin());
        }
        return std::span(halves);
    };
    if (type == DataType::f16) return rounded(random_f16_);
    return type == DataType::bf16 ? rounded(random_bf16_) : kernels::View(std::span(random_));
}

kernels::View Arena::random(std::int64_t count, DataType type) {
    const std::size_t begin = next_random_;
    next_random_ += floats_of(count, type);
    require(next_random_ <= random_.size(), "the arena holds all sets of buffers");
    return random_of(type).subspan(type == DataType::f32 ? begin : 2 * begin, static_cast<std::size_t>(count));
}

kernels::View Arena::scratch(std::int64_t count, DataType type) {
    const std::size_t begin = next_scratch_;
    next_scratch_ += floats_of(count, type);
    require(next_scratch_ <= scratch_.size(), "the arena holds all sets of buffers");
    return {scratch_.data() + begin, static_cast<std::size_t>(count), type};
}

Workload::Workload(const Problem& problem, const kernels::Choice& choice, CacheState state, Bytes limit)
    : problem_(problem), backend_(choice.backend), state_(state) {
    kernel_ = kernels::prepare(choice, problem, limit);
    const bool backward = problem.pass == Pass::backward_data || problem.pass == Pass::backward_weights;
    // A backward pass takes random numbers for the forward output, unless the backend kept something for itself.
    if (backward && backend_->workspace(problem.op, problem.batch) > 0)
        forward_ = kernels::prepare(choice, {problem.op, Pass::forward, problem.batch, problem.type}, limit);
}

std::string Workload::name() const {
    return fmt::format("{}/{}{}{}", to_string(problem_), backend_->name(), backend_->algorithm().empty() ? "" : "/",
                       backend_->algorithm());
}

// An upper bound for either half of the arena, cache lines included.
std::int64_t Workload::floats() const {
    const DataType type = problem_.type;
    std::size_t sum = 3 * floats_of(weight_count(problem_.op), type);
    if (problem_.pass == Pass::update) return static_cast<std::int64_t>(sum);
    for (const Shape& shape : input_shapes(problem_.op)) sum += floats_of(problem_.batch * elements(shape), type);
    sum += 2 * floats_of(problem_.batch * elements(output_shape(problem_.op)), type);  // dst_in, diff_dst
    sum += floats_of(backend_->workspace(problem_.op, problem_.batch), DataType::f32);
    return static_cast<std::int64_t>(sum);
}

std::span<std::int32_t> Workload::make_labels() {
    const auto* loss = std::get_if<SoftmaxLoss>(&problem_.op);
    const auto* terms = std::get_if<SoftmaxTerms>(&problem_.op);
    if (loss == nullptr && terms == nullptr) return {};
    const std::int64_t labels = loss != nullptr ? loss->rows * elements(loss->image) : terms->rows;
    const std::int64_t classes = loss != nullptr ? loss->classes : own_classes(*terms);
    labels_.resize(static_cast<std::size_t>(problem_.batch * labels));
    for (std::size_t i = 0; i < labels_.size(); ++i) {
        labels_[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % classes);
    }
    return labels_;
}

// All over the table, each a prime step from the last.
std::span<std::int32_t> Workload::make_indices() {
    if (!reads_integers(problem_.op)) return {};
    const auto* table = std::get_if<Embedding>(&problem_.op);
    const std::int64_t rows = table != nullptr ? table->vocabulary : std::get<EmbeddingBag>(problem_.op).vocabulary;
    indices_.resize(static_cast<std::size_t>(problem_.batch * elements(input_shapes(problem_.op).front())));
    for (std::size_t i = 0; i < indices_.size(); ++i) {
        indices_[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * 7919 % rows);
    }
    return indices_;
}

// Of LAMB: as equal as can be.
std::span<const std::int64_t> Workload::make_tensor_sizes() {
    const auto* lamb = std::get_if<LambUpdate>(&problem_.op);
    if (lamb == nullptr) return {};
    tensor_sizes_.assign(static_cast<std::size_t>(lamb->tensors), lamb->count / lamb->tensors);
    tensor_sizes_.back() += lamb->count % lamb->tensors;
    return tensor_sizes_;
}

// What a file would say of an operator: constants that are 0 and 1 in turn, places all over the table.
void Workload::make_given(kernels::Buffers& buffers) {
    const auto* each = std::get_if<Elementwise>(&problem_.op);
    const auto* picked = std::get_if<Gather>(&problem_.op);
    const auto* moved = std::get_if<Rearrangement>(&problem_.op);
    const bool made = !fixed_.empty() || !chosen_.empty();  // for another set of buffers: all read the same
    for (const Shape& shape : each == nullptr || made ? std::vector<Shape>{} : each->constants) {
        fixed_.emplace_back(static_cast<std::size_t>(elements(shape)));
        for (std::size_t i = 0; i < fixed_.back().size(); ++i) fixed_.back()[i] = static_cast<float>(i % 2);
    }
    if (!made && (picked != nullptr || (moved != nullptr && kernels::general::is_told(*moved)))) {
        std::int64_t sources = picked != nullptr ? elements(picked->table) : 0;
        if (moved != nullptr)
            for (const Shape& shape : moved->inputs) sources += elements(shape);
        chosen_.emplace_back(static_cast<std::size_t>(elements(picked != nullptr ? picked->output : moved->output)));
        for (std::size_t i = 0; i < chosen_.back().size(); ++i)
            chosen_.back()[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * 7919 % sources);
    }
    buffers.fixed = fixed_;
    buffers.chosen = chosen_;
}

// Of graphs: which rows edges lead to, all over the table.
kernels::View Workload::make_rows(std::int64_t rows, std::int64_t count) {
    std::vector<float> ids(static_cast<std::size_t>(count));
    const std::int64_t most = std::min<std::int64_t>(rows, problem_.type == DataType::bf16 ? 256 : 2048);
    const std::int64_t all = problem_.type == DataType::f32 ? rows : most;  // what the type has exactly
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<float>(static_cast<std::int64_t>(i) * 7919 % all);
    rows_.resize(ids.size());
    const kernels::View made{rows_.data(), ids.size(), problem_.type};
    kernels::convert(ids, made);
    return made;
}

// A recurrent layer with weights of up to 1 is chaotic: rounding grows from step to step, and no two backends agree.
kernels::View Workload::settled(kernels::View weights, Arena& arena) {
    const auto* cells = std::get_if<Recurrent>(&problem_.op);
    if (cells == nullptr) return weights;
    std::vector<float> values(weights.size());
    kernels::convert(weights, values);
    for (float& value : values) value /= std::sqrt(static_cast<float>(cells->hidden + cells->inputs));
    const kernels::View made = arena.scratch(std::ssize(values), problem_.type);
    kernels::convert(values, made);
    return made;
}

kernels::Buffers Workload::make_buffers(Arena& arena) {
    kernels::Buffers buffers;
    const DataType type = problem_.type;
    const std::int64_t weights = weight_count(problem_.op);
    if (problem_.pass == Pass::update) {
        const kernels::View values = arena.random(weights, type);
        buffers.diff_weights = arena.random(weights, type);
        buffers.weights = arena.scratch(weights, type);
        buffers.momentum = arena.scratch(weights, type);
        kernels::convert(values, buffers.weights);
        kernels::convert(values, buffers.momentum);
        if (!std::holds_alternative<SgdUpdate>(problem_.op)) {
            std::vector<float> squares(values.size());
            kernels::convert(values, squares);
            for (float& each : squares) each *= each;
            buffers.second_moment = arena.scratch(weights, type);
            kernels::convert(squares, buffers.second_moment);
            buffers.tensor_sizes = make_tensor_sizes();
        }
        produced_.emplace_back();       // the gradients of a bucket are older than any cache
        buffers.learning_rate = 1e-6F;  // weights hardly move, however long it is timed
        buffers.momentum_factor = 0.9F;
        return buffers;
    }
    kernels::View first_src;
    buffers.indices = make_indices();
    for (const Shape& shape : input_shapes(problem_.op)) {
        if (reads_integers(problem_.op)) break;
        const kernels::View src = arena.random(problem_.batch * elements(shape), type);
        if (first_src.empty()) first_src = src;
        buffers.src.emplace_back(src);
        buffers.diff_src.push_back(arena.scratch(problem_.batch * elements(shape), type));
    }
    if (const auto* moved = std::get_if<Rearrangement>(&problem_.op); moved != nullptr && general::of_rows(*moved)) {
        const std::int64_t rows = (moved->kind == "takerows" ? moved->inputs[0] : moved->output).front();
        buffers.src[1] = make_rows(rows, problem_.batch * elements(moved->inputs[1]));
    }
    const std::int64_t outputs = problem_.batch * elements(output_shape(problem_.op));
    const kernels::View diff_dst = arena.random(outputs, type);
    buffers.diff_dst = diff_dst;
    buffers.dst = arena.scratch(outputs, type);
    buffers.dst_in = arena.random(outputs, type);
    if (forward_) buffers.dst_in = buffers.dst;  // what a kernel kept belongs to what it made
    buffers.weights = settled(arena.random(weights, type), arena);
    if (updates_directly(problem_.op) && problem_.pass == Pass::backward_weights) {
        const kernels::View values = buffers.weights;
        buffers.weights = arena.scratch(weights, type);
        kernels::convert(values, buffers.weights);
        buffers.learning_rate = 1e-3F;
    }
    buffers.diff_weights = arena.scratch(weights, type);
    buffers.workspace = arena.scratch(backend_->workspace(problem_.op, problem_.batch));
    buffers.labels = make_labels();
    make_given(buffers);
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
    flip_signs(others_);
    flip_signs(produced_[next_]);
}

void Workload::run() { kernel_->run(sets_[next_]); }

}  // namespace rehearse::bench
