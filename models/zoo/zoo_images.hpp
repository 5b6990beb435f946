// SPDX-License-Identifier: Apache-2.0
// Networks of zoo() on images since 2017, beside those of zoo.hpp.
#pragma once

#include <string_view>

#include "core/network.hpp"

namespace rehearse::models {

/// B0 to B7.
Network efficientnet(int which);
Network mobilenet_v2();
Network mobilenet_v3_large();
Network mobilenet_v3_small();
Network convnext_tiny();
Network convnext_small();
Network convnext_base();
Network convnext_large();
Network resnext50_32x4d();
Network resnext101_32x4d();
Network resnext101_32x8d();
Network resnext101_64x4d();
/// "regnet-x-400mf" to "regnet-y-32gf".
Network regnet(std::string_view name);
Network stable_diffusion_unet();

}  // namespace rehearse::models
