// SPDX-License-Identifier: Apache-2.0
// Which data type each part of a training step uses, by the precision that the user asked for.
#pragma once

#include "core/op.hpp"
#include "core/schedule.hpp"

namespace rehearse::schedule {

//              fp32  fp16  bf16  mixed (Micikevicius et al. 2018)
// compute       f32   f16  bf16   f16   weights, activations and their gradients
// wire          f32   f16  bf16   f16   weights' gradients, as they are kept and sent
// update        f32   f16  bf16   f32   momentum and the weights that the optimizer changes
DataType compute_type(Precision precision);
DataType wire_type(Precision precision);
DataType update_type(Precision precision);

}  // namespace rehearse::schedule
