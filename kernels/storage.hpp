// SPDX-License-Identifier: Apache-2.0
// Arithmetic in f32 over tensors that are stored in another type.
#pragma once

#include <memory>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// `computing` is prepared for `problem` in f32. What the pass reads is converted once into f32 memory of this thread,
/// what it writes is rounded once from there; a tensor that is f32 already is used where it lies. Of an update that
/// brings gradients of another type or takes a copy of its weights, too. `workspace` is the backend's.
std::unique_ptr<Kernel> stored_as(const Problem& problem, std::int64_t workspace, std::unique_ptr<Kernel> computing);

/// About the f32 memory that it takes: of all tensors of the pass.
Bytes staged(const Problem& problem);

/// The problem that computes it.
Problem in_f32(const Problem& problem);

}  // namespace rehearse::kernels
