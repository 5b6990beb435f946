// SPDX-License-Identifier: Apache-2.0
// One overload an operator: computes `pass` of `batch` samples. Sums are kept in double, so that a result is the exact
// one rounded once to f32 (to within double rounding).
#pragma once

#include <cstdint>

#include "kernels/backend.hpp"

namespace rehearse::kernels::reference {

void run(const Conv& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const MatMul& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Pool& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const ChannelSums& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const BatchNorm& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Lrn& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Activation& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Add& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Concat& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const ChannelPad& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Dropout& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Flatten& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Softmax& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const SoftmaxLoss& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const SoftmaxTerms& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const TermsLoss& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Bias& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const SgdUpdate& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const ConvTranspose& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Resize& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Attention& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const LayerNorm& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Embedding& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const EmbeddingBag& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Interaction& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const DispatchTokens& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const CombineTokens& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const GroupedMatMul& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const AdamUpdate& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const LambUpdate& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Elementwise& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Reduction& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Rearrangement& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Gather& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const BatchedMatMul& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Recurrent& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Normalization& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const SoftmaxAlong& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run(const Parameter& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run_by_data(const Rearrangement& op, Pass pass, std::int64_t batch, const Buffers& buffers);
void run_rotary(const Elementwise& op, Pass pass, std::int64_t batch, const Buffers& buffers);

/// An activation at x, and its slope there.
double value(Nonlinearity kind, double x);
double slope(Nonlinearity kind, double x);

/// The n-th number of the SplitMix64 generator with this seed (Steele, Lea and Flood 2014), n from 0: a function of a
/// counter, so that element n draws the same number whatever was drawn before it.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t n);

}  // namespace rehearse::kernels::reference
