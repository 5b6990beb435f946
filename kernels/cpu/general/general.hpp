// SPDX-License-Identifier: Apache-2.0
// The general operators on all cores: rows, samples or matrices shared among threads.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

const Backend& general();

constexpr std::size_t most_operands = 8;  // of an Elementwise

/// Elementwise; Rearrangement, Gather and Parameter; BatchedMatMul; Normalization and SoftmaxAlong. Forward and
/// backward.
std::unique_ptr<Kernel> make_elementwise(const Problem& problem);
std::unique_ptr<Kernel> make_movement(const Problem& problem);
std::unique_ptr<Kernel> make_transposition(const Problem& problem);  // a Rearrangement that moves_last_dimension
bool moves_last_dimension(const Rearrangement& op);
std::unique_ptr<Kernel> make_stack(const Problem& problem);
std::unique_ptr<Kernel> make_sets(const Problem& problem);
std::unique_ptr<Kernel> make_by_data(const Problem& problem);  // a Rearrangement whose places the data say
std::unique_ptr<Kernel> make_rotary(const Problem& problem);   // an Elementwise "rotary"
std::unique_ptr<Kernel> make_recurrent(const Problem& problem);
std::unique_ptr<Kernel> make_reduction(const Problem& problem);
/// Whether make_reduction knows its function: not running sums, products and places.
bool reduces_by_lines(const Reduction& op);

}  // namespace rehearse::kernels::cpu
