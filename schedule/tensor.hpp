// SPDX-License-Identifier: Apache-2.0
// Tensor (model) parallelism: the ranks along one axis share each large layer (Krizhevsky 2014; Shoeybi et al. 2019).
#pragma once

#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// The whole network as one part.
Part whole(const Network& network);

/// What each of `parts` ranks along mesh axis `axis` computes; its weights are cut along that axis, the rest is the
/// same on all. Walks the network once and keeps for each output whether every rank has it or each its piece:
/// - a layer whose input every rank has gives each rank some of the output's columns or filters ("column parallel");
/// - one whose input lies in pieces multiplies them by its rows or channels, and the ranks add up ("row parallel");
/// - what works on each channel by itself stays in pieces; what needs all of them gathers first.
/// A layer that cannot be cut evenly is computed on every rank. So an MLP, an attention block or a pair of convolutions
/// costs one sum forward and one backward, as in Megatron-LM. InputError when no layer can be cut.
Part split_tensor(const Network& network, const std::string& axis_name, int axis, std::int64_t parts);

}  // namespace rehearse::schedule
