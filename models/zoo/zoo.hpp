// SPDX-License-Identifier: Apache-2.0
// The builders behind zoo(), one file a family.
#pragma once

#include <vector>

#include "core/network.hpp"

namespace rehearse::models {

Network lenet5();
Network vgg8();
Network mlp();
Network alexnet();
Network vgg16();
Network vgg19();
Network googlenet();
Network resnet32();
Network resnet50();
Network resnet101();
Network resnet152();
Network dlrm_small();
Network dlrm_large();
Network dlrm_mlperf();
Network mobilenet_v1();
Network densenet121();
Network cosmoflow();
Network cosmoflow_mlperf();
Network unet3d();
Network unet3d_small();
Network deeplabv3plus();
Network deeplabv3plus_small();
Network tiramisu();
Network tiramisu_small();
Network hep_cnn();
Network climatenet();
Network climatenet_small();

/// Of the climate networks' loss.
std::vector<double> climate_class_weights();

}  // namespace rehearse::models
