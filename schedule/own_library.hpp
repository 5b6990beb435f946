// SPDX-License-Identifier: Apache-2.0
// allreduce=own: sums are left to the library that the machine's file names, as PyTorch and Horovod leave them to NCCL.
#pragma once

#include <string>
#include <string_view>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// The word of plans for it.
inline constexpr std::string_view own_library = "own";

/// Leaves each sum, reduce-scatter and all-gather of a bucket to the machine's own library, where the plan asks for it
/// and nothing says why not (why_rings); the others keep their rings.
void settle_own_library(const Plan& plan, const Machine& machine, Schedule& schedule);

/// Returns why gradients that the plan leaves to the machine's own library are summed by rings instead: its file names
/// no library ([collectives]), which is how NCCL summed before version 2.4, or names one of its network without the
/// transport that was asked for, or one that does not know its devices, or ranks are spread over nodes as the model of
/// libraries does not have it. Empty: they are not, or the plan asks for no such thing.
std::string why_rings(const Plan& plan, const Machine& machine, const Schedule& schedule);

}  // namespace rehearse::schedule
