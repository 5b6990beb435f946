// SPDX-License-Identifier: Apache-2.0
// The builders behind zoo(), one file a family.
#pragma once

#include "core/network.hpp"

namespace rehearse::models {

Network lenet5();
Network alexnet();
Network vgg16();
Network vgg19();
Network googlenet();
Network resnet32();
Network resnet50();
Network resnet101();
Network resnet152();

}  // namespace rehearse::models
