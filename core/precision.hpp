// SPDX-License-Identifier: Apache-2.0
// Which data type each part of a training step uses, by the precision that the user asked for.
#pragma once

#include "core/op.hpp"
#include "core/schedule.hpp"

namespace rehearse {

//              fp32  fp16  bf16  mixed (Micikevicius et al. 2018)
// compute       f32   f16  bf16   f16   weights, activations and their gradients
// wire          f32   f16  bf16   f16   weights' gradients, as they are kept and sent
// update        f32   f16  bf16   f32   momentum and the weights that the optimizer changes
// loss          f32   f32   f32   f32   softmax and cross-entropy
DataType compute_type(Precision precision);
DataType wire_type(Precision precision);
DataType update_type(Precision precision);

/// What the passes of a layer compute in: the loss always in f32, as small probabilities vanish in 16 bits.
DataType compute_type(Precision precision, const Op& op);

/// Whether the gradients of the loss are multiplied, so that those of the weights do not vanish in f16, and a step
/// whose gradients overflow is skipped (Micikevicius et al. 2018). bf16 has the range of f32.
bool scales_loss(Precision precision);

}  // namespace rehearse
