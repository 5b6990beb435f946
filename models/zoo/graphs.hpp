// SPDX-License-Identifier: Apache-2.0
// Networks of graphs (models/zoo/graphs.cpp).
#pragma once

#include "core/network.hpp"

namespace rehearse::models {

Network gcn_cora();
Network gcn_small();
Network schnet();

}  // namespace rehearse::models
