// SPDX-License-Identifier: Apache-2.0
// A prediction's point on a scaling curve, as the command line and the window draw it.
#pragma once

#include "picture/scaling.hpp"
#include "predict/prediction.hpp"

namespace rehearse::report {

/// Its step and throughput are with the noise where there is some, as its epoch and training are; the band is then as
/// many times as long as the step. Its efficiency is without.
picture::ScalingPoint scaling_point(const predict::Point& point);

}  // namespace rehearse::report
