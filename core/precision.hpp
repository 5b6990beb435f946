// SPDX-License-Identifier: Apache-2.0
// Which data type each part of a training step uses, by the precision that the user asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/op.hpp"
#include "core/schedule.hpp"

namespace rehearse {

/// Adam keeps, for each parameter, a weight that layers read (`compute`), a gradient (`gradient`), two moments
/// (`update`) and, where `update` differs from `compute`, a master weight (`update`):
///
///               products  compute  gradient  update   bytes with Adam
///   fp32        f32       f32      f32       f32      16
///   tf32        tf32      f32      f32       f32      16
///   fp16        f16       f16      f16       f16       8
///   pure-bf16   bf16      bf16     bf16      bf16      8
///   mixed       f16       f16      f16       f32      16   Micikevicius et al. 2018; Apex O2, DeepSpeed
///   mixed-bf16  bf16      bf16     bf16      f32      16   DeepSpeed, FSDP with reduce_dtype=bfloat16
///   autocast    f16       f16      f32       f32      18   torch.autocast beside DistributedDataParallel
///   bf16        bf16      bf16     f32       f32      18   torch.autocast; Megatron-LM
///   fp8         fp8       bf16     f32       f32      20   Transformer Engine, a dense layer's weights also in 8 bits
///
/// The loss is always f32. Gradients are kept and sent in one type, unless the plan compresses what is sent.
struct PrecisionTypes {
    Precision precision;
    std::string_view name;  // of --precision
    DataType product, compute, gradient, update;
    std::string_view summary;
};
std::span<const PrecisionTypes> precisions();
const PrecisionTypes& types_of(Precision precision);
/// InputError names those that there are.
Precision parse_precision(std::string_view name);

DataType compute_type(Precision precision);  // weights that layers read, activations and their gradients
DataType wire_type(Precision precision);     // weights' gradients, as they are kept and sent
DataType update_type(Precision precision);   // momentum and the weights that the optimizer changes

/// What the passes of a layer compute in: products in the type of products, the loss always in f32, as small
/// probabilities vanish in 16 bits. In fp8 what Transformer Engine's Linear is: dense layers, and those of experts,
/// whose sizes are multiples of 16; attention, convolutions and scores that share the table of words are in bf16.
DataType compute_type(Precision precision, const Op& op);

/// Whether the gradients of the loss are multiplied, so that those of the weights do not vanish in f16, and a step
/// whose gradients overflow is skipped (Micikevicius et al. 2018). bf16 has the range of f32.
bool scales_loss(Precision precision);

/// Bytes of a layer's weights as operands of FP8 products, as they are and transposed, made once a step.
std::int64_t operand_bytes(Precision precision, const Op& op);

}  // namespace rehearse
