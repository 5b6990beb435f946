// SPDX-License-Identifier: Apache-2.0
// One overload an operator: the Program of `pass`; dnnl::error where oneDNN has no implementation.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/onednn/program.hpp"

namespace rehearse::kernels::onednn {

/// How a convolution is computed: on NCHW or blocks of channels, whichever was faster (conv.cpp says where); on blocks;
/// on NCHW, which oneDNN unrolls into a matrix; by Winograd's algorithm.
enum class ConvAlgorithm { faster_layout, direct, gemm, winograd };

void plan(Program& program, const Conv& op, Pass pass, std::int64_t batch,
          ConvAlgorithm chosen = ConvAlgorithm::faster_layout);
void plan(Program& program, const MatMul& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Pool& op, Pass pass, std::int64_t batch);
void plan(Program& program, const BatchNorm& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Lrn& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Activation& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Add& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Concat& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Softmax& op, Pass pass, std::int64_t batch);

/// The gradient of what a fused activation was given, dense like `output`: of ReLU by the sign of dst_in, of GELU at
/// what forward left in the workspace. Without an activation it is diff_dst.
dnnl::memory diff_of_result(Program& program, std::optional<Nonlinearity> activation, const dnnl::memory::desc& output);
void plan(Program& program, const LayerNorm& op, Pass pass, std::int64_t batch);
void plan(Program& program, const Attention& op, Pass pass, std::int64_t batch);

/// Bytes of oneDNN's own workspace, from forward to backward.
std::size_t workspace_bytes(const Pool& op, std::int64_t batch);
std::size_t workspace_bytes(const Lrn& op, std::int64_t batch);
/// Of attention, the probabilities: what an implementation in separate steps keeps.
std::size_t workspace_bytes(const Attention& op, std::int64_t batch);

}  // namespace rehearse::kernels::onednn
