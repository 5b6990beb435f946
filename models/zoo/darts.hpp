// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/network.hpp"

namespace rehearse::models {

/// The network in which DARTS (Liu et al. 2019) searches for CIFAR-10's cells; and a small one of the same parts.
Network darts();
Network darts_small();

}  // namespace rehearse::models
