// SPDX-License-Identifier: Apache-2.0
#include "kernels/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "core/error.hpp"
#include "core/rotary.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels {
namespace {

template <typename Span>
void expect(const Span& span, std::int64_t size, const char* name, const Problem& problem) {
    if (static_cast<std::int64_t>(span.size()) == size) return;
    throw std::logic_error(
        fmt::format("bug in Rehearse: {}: {} has {} elements, needs {}", to_string(problem), name, span.size(), size));
}

template <typename Span>
void expect_or_empty(const Span& span, std::int64_t size, const char* name, const Problem& problem) {
    if (!span.empty()) expect(span, size, name, problem);
}

// A tensor: of the problem's type, too.
void expect_tensor(ConstView view, std::int64_t size, const char* name, const Problem& problem) {
    expect(view, size, name, problem);
    if (view.empty() || view.type() == problem.type) return;
    throw std::logic_error(
        fmt::format("bug in Rehearse: {}: {} holds {}", to_string(problem), name, to_string(view.type())));
}

void expect_tensor_or_empty(ConstView view, std::int64_t size, const char* name, const Problem& problem) {
    if (!view.empty()) expect_tensor(view, size, name, problem);
}

}  // namespace

void refuse_view(DataType held, DataType taken) {
    throw std::logic_error(
        fmt::format("bug in Rehearse: a view of {} is taken for {}", to_string(held), to_string(taken)));
}

BufferSizes::BufferSizes(const Problem& problem, std::int64_t workspace)
    : problem_(problem), dst_(0), weights_(0), workspace_(workspace) {
    if (problem.pass == Pass::update) {
        weights_ = updated(problem.op).value_or(parameters(problem.op));
        return;
    }
    for (const Shape& shape : input_shapes(problem.op)) src_.push_back(problem.batch * elements(shape));
    dst_ = problem.batch * elements(output_shape(problem.op));
    weights_ = weights_read(problem.op);
    if (const auto* loss = std::get_if<SoftmaxLoss>(&problem.op)) {
        labels_ = problem.batch * loss->rows * elements(loss->image);
    }
    if (const auto* terms = std::get_if<SoftmaxTerms>(&problem.op)) labels_ = problem.batch * terms->rows;
    if (reads_integers(problem.op)) {
        ids_ = src_.front();
        src_.clear();
        const auto* table = std::get_if<Embedding>(&problem.op);
        vocabulary_ =
            table != nullptr ? table->vocabulary * table->parts : std::get<EmbeddingBag>(problem.op).vocabulary;
    }
}

// What a network's file says of an operator beside its sizes.
void BufferSizes::check_given(const Buffers& buffers) const {
    const auto* each = std::get_if<Elementwise>(&problem_.op);
    const auto rotation = each == nullptr ? std::nullopt : rotation_of(*each);
    if (each != nullptr && (!rotation || rotation->base == 0)) {
        expect(buffers.fixed, static_cast<std::int64_t>(each->constants.size()), "the list of fixed", problem_);
        for (std::size_t i = 0; i < each->constants.size(); ++i)
            expect(buffers.fixed[i], elements(each->constants[i]), "fixed", problem_);
        for (const auto& places : buffers.chosen) expect_or_empty(places, elements(each->shape), "chosen", problem_);
    }
    const auto* moved = std::get_if<Rearrangement>(&problem_.op);
    const auto* picked = std::get_if<Gather>(&problem_.op);
    if (picked == nullptr && (moved == nullptr || !general::is_told(*moved))) return;
    expect(buffers.chosen, 1, "the list of chosen", problem_);
    expect(buffers.chosen[0], elements(picked != nullptr ? picked->output : moved->output), "chosen", problem_);
}

void BufferSizes::check(const Buffers& buffers) const {
    if (problem_.pass != Pass::update) check_given(buffers);
    switch (problem_.pass) {
        case Pass::forward:
            return check_forward(buffers);
        case Pass::backward_data:
            return check_backward_data(buffers);
        case Pass::backward_weights:
            return check_backward_weights(buffers);
        case Pass::update:
            return check_update(buffers);
    }
}

void BufferSizes::check_update(const Buffers& buffers) const {
    expect_tensor(buffers.weights, weights_, "weights", problem_);
    expect(buffers.diff_weights, weights_, "diff_weights", problem_);
    expect_tensor(buffers.momentum, weights_, "momentum", problem_);
    expect_or_empty(buffers.weights_copy, weights_, "weights_copy", problem_);
    const auto* lamb = std::get_if<LambUpdate>(&problem_.op);
    if (lamb == nullptr && !std::holds_alternative<AdamUpdate>(problem_.op)) return;
    expect_tensor(buffers.second_moment, weights_, "second_moment", problem_);
    require(buffers.update_count > 0, "the first update is number 1");
    if (lamb == nullptr) return;
    expect(buffers.tensor_sizes, lamb->tensors, "tensor_sizes", problem_);
    const auto sizes = buffers.tensor_sizes;
    require(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == lamb->count, "tensors are all parameters");
}

void BufferSizes::check_ids(std::span<const std::int32_t> ids) const {
    expect(ids, ids_, "indices", problem_);
    const auto wrong = std::ranges::find_if(ids, [&](std::int32_t id) { return id < 0 || id >= vocabulary_; });
    if (wrong == ids.end()) return;
    throw InputError(fmt::format("{}: id {} at place {} of the batch is none of the table's 0 to {}",
                                 to_string(problem_), *wrong, wrong - ids.begin(), vocabulary_ - 1));
}

void BufferSizes::check_inputs(const Buffers& buffers, bool needed) const {
    if (ids_ > 0) return check_ids(buffers.indices);
    const auto inputs = static_cast<std::int64_t>(src_.size());
    if (needed || !buffers.src.empty()) expect(buffers.src, inputs, "the list of src", problem_);
    for (std::size_t i = 0; i < buffers.src.size(); ++i) {
        if (needed || !buffers.src[i].empty()) expect_tensor(buffers.src[i], src_[i], "src", problem_);
    }
}

void BufferSizes::check_forward(const Buffers& buffers) const {
    check_inputs(buffers, true);
    expect_tensor(buffers.dst, dst_, "dst", problem_);
    expect_tensor(buffers.weights, weights_, "weights", problem_);
    expect(buffers.workspace, workspace_, "workspace", problem_);
    if (const auto* norm = std::get_if<BatchNorm>(&problem_.op)) {
        expect_or_empty(buffers.state, 2 * norm->channels, "state", problem_);
    }
    if (labels_ > 0) expect(buffers.labels, labels_, "labels", problem_);
}

void BufferSizes::check_backward_data(const Buffers& buffers) const {
    check_inputs(buffers, gradient_reads_src(problem_.op));
    if (labels_ > 0) expect(buffers.labels, labels_, "labels", problem_);
    if (!is_loss(problem_.op)) expect_tensor(buffers.diff_dst, dst_, "diff_dst", problem_);
    if (gradient_reads_dst(problem_.op)) expect_tensor(buffers.dst_in, dst_, "dst_in", problem_);
    expect_tensor(buffers.weights, weights_, "weights", problem_);
    expect(buffers.workspace, workspace_, "workspace", problem_);
    if (gradients_together(problem_.op)) {
        expect_tensor(buffers.diff_weights, weights_, "diff_weights", problem_);
    }
    expect(buffers.diff_src, static_cast<std::int64_t>(src_.size()), "the list of diff_src", problem_);
    for (std::size_t i = 0; i < src_.size(); ++i)
        expect_tensor_or_empty(buffers.diff_src[i], src_[i], "diff_src", problem_);
}

void BufferSizes::check_backward_weights(const Buffers& buffers) const {
    check_inputs(buffers, true);
    expect_tensor(buffers.diff_dst, dst_, "diff_dst", problem_);
    const bool recurrent = std::holds_alternative<Recurrent>(problem_.op);
    if (has_fused_relu(problem_.op) || recurrent) expect_tensor(buffers.dst_in, dst_, "dst_in", problem_);
    if (weights_gradient_reads_weights(problem_.op)) expect_tensor(buffers.weights, weights_, "weights", problem_);
    if (keeps_slope(problem_.op) || recurrent) expect(buffers.workspace, workspace_, "workspace", problem_);
    if (updates_directly(problem_.op)) return expect_tensor(buffers.weights, weights_, "weights", problem_);
    expect_tensor(buffers.diff_weights, weights_, "diff_weights", problem_);
}

bool weights_gradient_reads_weights(const Op& op) {
    return std::holds_alternative<Recurrent>(op) ||
           (std::holds_alternative<Elementwise>(op) && reads(op, Pass::backward_weights).src);
}

bool wants_input_gradient(const Buffers& buffers) {
    return std::ranges::any_of(buffers.diff_src, [](const auto& part) { return !part.empty(); });
}

}  // namespace rehearse::kernels
