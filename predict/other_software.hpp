// SPDX-License-Identifier: Apache-2.0
// Where prices are of other software than the framework that a user asks about.
#pragma once

#include "core/machine.hpp"
#include "predict/prediction.hpp"

namespace rehearse::predict {

struct OtherSoftware {
    double own_kernels = 0;       // share of the computation that is priced by kernels of this program, as measured
    bool other_messages = false;  // ranks talk over sockets, but their messages were measured of something else
    bool any() const { return own_kernels > 0.5 || other_messages; }
};

/// Returns what is priced by other software in the largest point; nothing where it is anchored on a pilot, or the
/// framework is this program itself (`foreign` false).
OtherSoftware other_software(const Prediction& prediction, bool foreign, bool sockets);

}  // namespace rehearse::predict
