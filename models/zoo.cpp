// SPDX-License-Identifier: Apache-2.0
// The table of networks that ship with Rehearse, and the one door for names and files.
#include "models/zoo.hpp"

#include <array>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

constexpr std::array networks{
    ModelName{"lenet5", "LeCun et al. 1998, 1x32x32 digits, 10 classes; ReLU and max pools", lenet5},
    ModelName{"alexnet", "Krizhevsky 2014 (one column), 3x224x224, 1000 classes", alexnet},
    ModelName{"vgg16", "Simonyan and Zisserman 2015, configuration D, 3x224x224, 1000 classes", vgg16},
    ModelName{"vgg19", "Simonyan and Zisserman 2015, configuration E, 3x224x224, 1000 classes", vgg19},
    ModelName{"googlenet", "Szegedy et al. 2015 without auxiliary heads, 3x224x224, 1000 classes", googlenet},
    ModelName{"resnet32", "He et al. 2016 for CIFAR-10, 3x32x32, parameter-free shortcuts", resnet32},
    ModelName{"resnet50", "He et al. 2016, stride in the 3x3 (v1.5), 3x224x224, 1000 classes", resnet50},
    ModelName{"resnet101", "He et al. 2016, stride in the 3x3 (v1.5), 3x224x224, 1000 classes", resnet101},
    ModelName{"resnet152", "He et al. 2016, stride in the 3x3 (v1.5), 3x224x224, 1000 classes", resnet152},
    ModelName{"mobilenet-v1", "Howard et al. 2017, 3x224x224, 1000 classes", mobilenet_v1},
    ModelName{"densenet121", "Huang et al. 2017, 3x224x224, 1000 classes", densenet121},
    ModelName{"unet3d", "Cicek et al. 2016 with padded convolutions, 3x128x128x128, 3 classes a voxel", unet3d},
    ModelName{"cosmoflow", "Mathuriya et al. 2018, 1x128x128x128, 3 parameters", cosmoflow},
    ModelName{"cosmoflow-mlperf", "MLPerf HPC, 4x128x128x128, 4 parameters", cosmoflow_mlperf},
    ModelName{"deeplabv3plus", "Kurth et al. 2018, ResNet-50 core, 16x768x1152, 3 classes a pixel", deeplabv3plus},
    ModelName{"tiramisu", "Kurth et al. 2018, growth 32, 16x768x1152, 3 classes a pixel", tiramisu},
    ModelName{"hep-cnn", "Kurth et al. 2017, 3x224x224, 2 classes", hep_cnn},
};

}  // namespace

std::span<const ModelName> zoo() { return networks; }

Network load_network(const std::string& name_or_file, bool allow_unknown) {
    std::vector<std::string_view> names;
    for (const ModelName& network : networks) {
        if (network.name == name_or_file) return network.build();
        names.push_back(network.name);
    }
    if (name_or_file.ends_with(".onnx") || name_or_file.find('/') != std::string::npos)
        return import_onnx(name_or_file, allow_unknown);
    throw InputError(fmt::format("unknown network '{}'{}; choose one of {}, or give the path of an .onnx file",
                                 name_or_file, did_you_mean(name_or_file, names), join(names)));
}

std::vector<Network> load_suite(const std::string& name_or_file) {
    if (name_or_file == "climate") return {deeplabv3plus(), tiramisu()};
    return {load_network(name_or_file)};
}

}  // namespace rehearse::models
