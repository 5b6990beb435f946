// SPDX-License-Identifier: Apache-2.0
#include "prices/stack_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prices/price_model.hpp"
#include "prices/roofline.hpp"

namespace rehearse {

namespace {

// A gradient's operands lie the other way round than those of the batches that were measured, as a dense layer's do.
constexpr double gradient_error = 0.15;
// What a stack's products take beyond large ones is not known: 1.2 to 1.4 times as long at k = 64 on five boards
// (NeuSight), more where they are few or small.
constexpr double by_products_error = 0.35;

std::int64_t of_stack(const Shape& shape) {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
    return count;
}

bool has_batches(const DeviceClass& device, DataType type) {
    return device.model != nullptr && std::ranges::any_of(device.model->kernels(), [&](const MeasuredKernels& each) {
               return each.kind == "groupedmatmul" && each.type == type && each.sheet.board;
           });
}

bool has_share_of_stacks(const DeviceClass& device) {
    return std::ranges::any_of(device.efficiencies, [](const Efficiency& row) { return row.kind == "batchedmatmul"; });
}

// The product that a pass of a dense layer is, in the form of a forward one.
MatMul in_forward_form(const MatMul& op, Pass pass) {
    if (pass == Pass::backward_data) return {.m = op.m, .n = op.k, .k = op.n, .bias = false};
    if (pass == Pass::backward_weights) return {.m = op.k, .n = op.n, .k = op.m, .bias = false};
    return op;
}

Problem as_problem(const StackedProducts& stack, Pass pass, DataType type) {
    if (stack.count == 1) return {stack.each, pass, 1, type};
    const MatMul one = in_forward_form(stack.each, pass);
    return {GroupedMatMul{.experts = stack.count, .rows = one.m, .n = one.n, .k = one.k, .bias = false}, Pass::forward,
            1, type};
}

}  // namespace

StackedProducts stacked_products(const BatchedMatMul& op, Pass pass, std::int64_t batch) {
    const std::int64_t left = of_stack(op.a), right = of_stack(op.b);
    StackedProducts stack{std::max(left, right) * batch,
                          {.m = op.a[op.a.size() - 2], .n = op.b.back(), .k = op.a.back(), .bias = false},
                          {}};
    if (right == 1) {
        stack.count = op.trained == 2 ? 1 : batch;
        stack.each.m *= op.trained == 2 ? left * batch : left;
    }
    if (pass == Pass::forward) {
        stack.passes = {Pass::forward};
    } else if (pass == Pass::backward_data) {
        if (op.trained != 1) stack.passes.push_back(Pass::backward_data);
        if (op.trained != 2) stack.passes.push_back(Pass::backward_weights);
    } else {
        stack.passes = {op.trained == 1 ? Pass::backward_data : Pass::backward_weights};
    }
    return stack;
}

std::optional<Price> stack_by_batches(const Problem& problem, const DeviceClass& device) {
    const auto* op = std::get_if<BatchedMatMul>(&problem.op);
    if (op == nullptr || device.host || has_share_of_stacks(device)) return std::nullopt;
    const StackedProducts stack = stacked_products(*op, problem.pass, problem.batch);
    const bool batches = stack.count > 1 && has_batches(device, problem.type);
    if (stack.count > 1 && !batches) return std::nullopt;
    Price answer{Seconds{0}, 0, ""};
    for (const Pass pass : stack.passes) {
        const Problem one = as_problem(stack, pass, problem.type);
        const Price price = rehearse::price(one, device);
        const double error = batches && pass != Pass::forward ? std::hypot(price.error, gradient_error) : price.error;
        answer.time += price.time;
        answer.error = std::max(answer.error, error);
        answer.source = fmt::format("as {}: {}", to_string(one.op), price.source);
    }
    answer.basis = Basis::modelled;
    return answer;
}

std::optional<Price> stack_by_products(const Problem& problem, const DeviceClass& device) {
    if (!std::holds_alternative<BatchedMatMul>(problem.op) || has_share_of_stacks(device)) return std::nullopt;
    const RooflineTimes least = roofline_times(problem, device);
    const Problem large{MatMul{4096, 4096, 4096, false}, Pass::forward, 1, problem.type};
    const RooflineTimes of_large = roofline_times(large, device);
    if (!least.compute || !least.memory || !of_large.compute) return std::nullopt;
    const Price dense = price(large, device);
    const double beyond = std::max(1.0, dense.time / *of_large.compute);
    return Price{std::max(*least.compute * beyond, *least.memory) + device.launch.value,
                 std::hypot(dense.error, by_products_error),
                 fmt::format("at the share of the peak that large products reach on {}, {:.3g}: {}", device.name,
                             1 / beyond, dense.source)};
}

}  // namespace rehearse
