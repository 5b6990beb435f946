// SPDX-License-Identifier: Apache-2.0
// Attention in one kernel (FlashAttention: Dao et al. 2022), whose scores stay on the chip, on a GPU of which none was
// measured (docs/transformer_prices.md).
#pragma once

#include "core/machine.hpp"
#include "prices/tile_model.hpp"

namespace rehearse {

/// Relative error of its price beside that of the chip's products, one standard deviation.
inline constexpr double fused_attention_error = 0.25;

/// Of a query's keys the share that it sees, in the mean of all queries.
double shown_share(const Attention& op);

/// Seconds of the forward pass, or of the backward one, of `batch` samples where memory keeps up: its products at the
/// share of the peak that large tiles reach, and an exponential a score.
Seconds fused_attention_time(const Attention& op, Pass pass, std::int64_t batch, const TileModel& model,
                             const DeviceClass& device, DataType type);

}  // namespace rehearse
