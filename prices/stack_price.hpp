// SPDX-License-Identifier: Apache-2.0
// Stacks of products (BatchedMatMul) as the products that they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/machine.hpp"
#include "prices/prices.hpp"

namespace rehearse {

/// `count` times the same product and, as passes of a dense layer of these sizes, which of its three a pass makes:
/// forward, backward_data for the gradient of the left operand, backward_weights for that of the right one. Where all
/// of a stack multiply the same right operand, their rows are one product's.
struct StackedProducts {
    std::int64_t count = 1;
    MatMul each;
    std::vector<Pass> passes;
};
StackedProducts stacked_products(const BatchedMatMul& op, Pass pass, std::int64_t batch);

/// By the batches of products that were measured on the board; nothing where none were, or the device has a share of
/// its own for stacks. What is one product alone is priced as that on every GPU.
std::optional<Price> stack_by_batches(const Problem& problem, const DeviceClass& device);

/// By what large products of the device take beyond its peak, or by its bytes; nothing for other operators, or where
/// the device has a share of its own for stacks.
std::optional<Price> stack_by_products(const Problem& problem, const DeviceClass& device);

}  // namespace rehearse
