// SPDX-License-Identifier: Apache-2.0
// The builders behind zoo(), one file a family.
#pragma once

#include <vector>

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
Network resnet50_v1();
Network resnet101_v1();
Network resnet152_v1();
Network resnet50_v2();
Network resnet101_v2();
Network resnet152_v2();
Network inception_v3();
Network lstm_4x512();
Network encoder_4x512();
Network dlrm_small();
Network mobilenet_v1();
Network densenet121();
Network cosmoflow();
Network cosmoflow_mlperf();
Network cosmoflow_small();
Network unet3d();
Network deeplabv3plus();
Network tiramisu();
Network hep_cnn();

/// Of the climate networks' loss.
std::vector<double> climate_class_weights();

}  // namespace rehearse::models
