// SPDX-License-Identifier: Apache-2.0
// One overload an operator: the Program of `pass`; dnnl::error where oneDNN has no implementation.
#pragma once

#include <cstdint>

#include "kernels/onednn/program.hpp"

namespace rehearse::kernels::onednn {

void plan(Program& program, const Conv2d& op, Pass pass, std::int64_t batch);
void plan(Program& program, const MatMul& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Pool2d& op, Pass pass, std::int64_t batch);
void plan(Program& program, const BatchNorm& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Lrn& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Activation& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Add& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Concat& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Softmax& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Conv3d& op, Pass pass, std::int64_t batch);

void plan(Program& program, const LayerNorm& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Attention& op, Pass pass, std::int64_t batch);

/// Bytes of oneDNN's own workspace, from forward to backward.
std::size_t workspace_bytes(const Pool2d& op, std::int64_t batch);
std::size_t workspace_bytes(const Lrn& op, std::int64_t batch);
/// Of attention, the probabilities: what an implementation in separate steps keeps.
std::size_t workspace_bytes(const Attention& op, std::int64_t batch);

}  // namespace rehearse::kernels::onednn
