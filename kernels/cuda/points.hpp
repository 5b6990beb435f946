// SPDX-License-Identifier: Apache-2.0
// Every task that is not a sum over terms: what engine.hpp declares.
#pragma once

#include <variant>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/fft.hpp"
#include "kernels/cuda/fp8.hpp"
#include "kernels/cuda/images.hpp"
#include "kernels/cuda/lamb.hpp"
#include "kernels/cuda/moves.hpp"
#include "kernels/cuda/norm_sums.hpp"
#include "kernels/cuda/packed.hpp"
#include "kernels/cuda/pools.hpp"
#include "kernels/cuda/rows.hpp"

namespace rehearse::kernels::cuda {

using AnyPoint =
    std::variant<AddTensors, AddBias, CopyRuns, PadChannels, Activate, DropOut, PickRows, Zero, SgdStep, AdamStep,
                 Pooling, Statistics, JoinStatistics, Normalize, GradientSums, JoinSums, NormBackward, LayerBackward,
                 ColumnSums, SoftmaxRow, RowLoss, RowMeans, Unfinite, LambMoments, LambRatios, LambStep, AttendForward,
                 AttendCommon, AttendBackward, LayIntoPlanes, TakeFromPlanes, MultiplySpectra, NormalizeAcross,
                 MixPixels, LayChannels, PadPixels, LayTerms, LargestMagnitude, ToFp8>;
struct PointTask : AnyPoint {
    using AnyPoint::AnyPoint;
};

}  // namespace rehearse::kernels::cuda
