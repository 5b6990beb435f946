// SPDX-License-Identifier: Apache-2.0
// Networks of zoo() that published runs were made with, beside those of zoo.hpp.
#pragma once

#include <cstdint>

#include "core/network.hpp"

namespace rehearse::models {

Network resnet50_v1();
Network resnet101_v1();
Network resnet152_v1();
Network resnet50_v2();
Network resnet101_v2();
Network resnet152_v2();
/// As MXNet's example trains it: the stride in the 3x3.
Network resnet152_v2_mxnet();
Network inception_v3();
/// On images of 224 x 224, as Horovod's synthetic benchmark trains it.
Network inception_v3_224();
/// As Caffe trains it: filters as MXNet's in two groups, local response normalization before the pools.
Network alexnet_caffe();
/// As MXNet's example trains it: 96, 256, 384, 384 and 256 filters, local response normalization.
Network alexnet_mxnet();
/// As many filters, without normalization, on images of 226 x 226, as ParaDL trains it in Chainer.
Network alexnet_chainer();
/// As TensorFlow's benchmarks train it: 384 filters in the fourth convolution.
Network alexnet_tf();
/// On images of 226 x 226, as ParaDL trains it in Chainer, whose pools keep their last window: 8 x 8 pixels before the
/// first dense layer.
Network vgg16_226();
/// As Caffe trains it, with its two auxiliary heads.
Network googlenet_heads();
/// As MXNet's example has it, on images of 256 x 256: no normalization, pools that lose their last window.
Network googlenet_mxnet();
/// As Torch's benchmarks have it: no normalization, 13 x 13 pixels in its fourth stage, 1,008 classes.
Network googlenet_torch();
Network cosmoflow_small();
Network cosmoflow_256();
Network cosmoflow_512();
Network deepcam();
Network yolov3();
/// On images of 448 x 448 and 20 classes, as Pollux trains it.
Network yolov3_voc();
/// torchgpipe's: so many convolutions a block, so many channels in the first one.
Network unet(int convs, std::int64_t channels);
Network unet_5x64();
/// So many normal cells; a quarter of `filters` in the first convolution.
Network amoebanet_d(int normal_cells, std::int64_t filters);
Network amoebanet_d_18x256();
Network lstm_4x512();
Network cnn3d_64();
Network encoder_4x512();

}  // namespace rehearse::models
