// SPDX-License-Identifier: Apache-2.0
// Which tensors a pass touches, for whoever keeps them in another type or another memory.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/buffers.hpp"

namespace rehearse::kernels {

enum class Use { read, written, changed };

/// visit(view of `inside`, the same of `outside`, use) for each tensor that the pass touches.
template <typename Visit>
void for_each_tensor(const Problem& problem, Buffers& inside, const Buffers& outside, Visit visit) {
    const bool data = problem.pass == Pass::backward_data;
    if (problem.pass == Pass::update) {
        visit(inside.weights, outside.weights, Use::changed);
        visit(inside.momentum, outside.momentum, Use::changed);
        visit(inside.second_moment, outside.second_moment, Use::changed);
        visit(inside.diff_weights, outside.diff_weights, Use::read);
        return;
    }
    for (std::size_t i = 0; i < inside.src.size(); ++i) visit(inside.src[i], outside.src[i], Use::read);
    if (problem.pass != Pass::backward_weights || weights_gradient_reads_weights(problem.op))
        visit(inside.weights, outside.weights, Use::read);
    if (problem.pass == Pass::forward) return visit(inside.dst, outside.dst, Use::written);
    visit(inside.diff_dst, outside.diff_dst, Use::read);
    if (gradient_reads_dst(problem.op)) visit(inside.dst_in, outside.dst_in, Use::read);
    for (std::size_t i = 0; data && i < inside.diff_src.size(); ++i) {
        visit(inside.diff_src[i], outside.diff_src[i], Use::written);
    }
    if (updates_directly(problem.op)) return visit(inside.weights, outside.weights, Use::changed);
    if (!data || !has_pass(problem.op, Pass::backward_weights)) {
        visit(inside.diff_weights, outside.diff_weights, Use::written);
    }
}

}  // namespace rehearse::kernels
