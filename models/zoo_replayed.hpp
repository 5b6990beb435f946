// SPDX-License-Identifier: Apache-2.0
// Networks of zoo() that published runs were made with, beside those of zoo.hpp.
#pragma once

#include "core/network.hpp"

namespace rehearse::models {

Network resnet50_v1();
Network resnet101_v1();
Network resnet152_v1();
Network resnet50_v2();
Network resnet101_v2();
Network resnet152_v2();
Network inception_v3();
Network cosmoflow_small();
Network lstm_4x512();
Network encoder_4x512();

}  // namespace rehearse::models
