// SPDX-License-Identifier: Apache-2.0
// The table of networks that ship with Rehearse, and the one door for names and files.
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/huggingface/huggingface.hpp"
#include "models/models.hpp"
#include "models/zoo/darts.hpp"
#include "models/zoo/graphs.hpp"
#include "models/zoo/recurrent.hpp"
#include "models/zoo/transformer.hpp"
#include "models/zoo/zoo_images.hpp"

namespace rehearse::models {
namespace {

template <std::size_t size>
struct Name {
    char text[size] = {};
    constexpr Name(const char (&from)[size]) {  // NOLINT: a literal is the template's argument
        for (std::size_t i = 0; i < size; ++i) text[i] = from[i];
    }
};

// A builder for the table, of a transformer by its name.
template <Name name>
Network published() {
    return *load_transformer(name.text);
}

// The same, of a network of models/huggingface/published.json.
template <Name name>
Network configured() {
    return *load_published_config(name.text);
}

template <Name name>
Network of_steps() {
    return *load_recurrent(name.text);
}

template <int which>
Network efficientnet_b() {
    return efficientnet(which);
}

template <Name name>
Network regnet_of() {
    return regnet(name.text);
}

constexpr std::array networks{
    ModelName{"lenet5", "LeCun et al. 1998, 1x32x32 digits, 10 classes; ReLU and max pools", lenet5},
    ModelName{"alexnet", "Krizhevsky 2014 (one column), 3x224x224, 1000 classes", alexnet},
    ModelName{"alexnet-mxnet", "96 to 384 filters and local response normalization, as MXNet has it", alexnet_mxnet},
    ModelName{"alexnet-caffe", "the same in two groups, 3x224x224 (Caffe's, in Torch's benchmarks)", alexnet_caffe},
    ModelName{"alexnet-chainer", "as MXNet has it, without normalization, 3x226x226 (ParaDL)", alexnet_chainer},
    ModelName{"alexnet-tf", "as TensorFlow's benchmarks have it, 3x227x227", alexnet_tf},
    ModelName{"vgg16", "Simonyan and Zisserman 2015, configuration D, 3x224x224, 1000 classes", vgg16},
    ModelName{"vgg16-226", "the same on images of 226x226, pools keep their last window (ParaDL)", vgg16_226},
    ModelName{"vgg19", "Simonyan and Zisserman 2015, configuration E, 3x224x224, 1000 classes", vgg19},
    ModelName{"googlenet", "Szegedy et al. 2015 without auxiliary heads, 3x224x224, 1000 classes", googlenet},
    ModelName{"googlenet-heads", "the same with its auxiliary heads, as Caffe trains it", googlenet_heads},
    ModelName{"googlenet-mxnet", "without normalization, 3x256x256, as MXNet has it", googlenet_mxnet},
    ModelName{"googlenet-torch", "without normalization, 1008 classes, as Torch's benchmarks have it", googlenet_torch},
    ModelName{"resnet32", "He et al. 2016 for CIFAR-10, 3x32x32, parameter-free shortcuts", resnet32},
    ModelName{"vgg8", "six 3x3 convolutions as in VGG and two dense layers, 3x32x32, 10 classes", vgg8},
    ModelName{"darts", "Liu et al. 2019, 8 cells of mixed operators, 3x32x32: plan data:bilevel=on", darts},
    ModelName{"darts-small", "the same parts, 3 cells, 3x16x16: trains on a host", darts_small},
    ModelName{"mlp", "three dense layers, 3072-1024-1024-10, 3x32x32, 10 classes", mlp},
    ModelName{"resnet50", "He et al. 2016, stride in the 3x3 (v1.5), 3x224x224, 1000 classes", resnet50},
    ModelName{"resnet101", "He et al. 2016, stride in the 3x3 (v1.5), 3x224x224, 1000 classes", resnet101},
    ModelName{"resnet152", "He et al. 2016, stride in the 3x3 (v1.5), 3x224x224, 1000 classes", resnet152},
    ModelName{"resnet50-v1", "He et al. 2016, stride in the first 1x1, 3x224x224, 1000 classes", resnet50_v1},
    ModelName{"resnet101-v1", "He et al. 2016, stride in the first 1x1, 3x224x224, 1000 classes", resnet101_v1},
    ModelName{"resnet152-v1", "He et al. 2016, stride in the first 1x1, 3x224x224, 1000 classes", resnet152_v1},
    ModelName{"resnet50-v2", "He et al. 2016 (identity mappings), 3x224x224, 1000 classes", resnet50_v2},
    ModelName{"resnet101-v2", "He et al. 2016 (identity mappings), 3x224x224, 1000 classes", resnet101_v2},
    ModelName{"resnet152-v2", "He et al. 2016 (identity mappings), 3x224x224, 1000 classes", resnet152_v2},
    ModelName{"resnet152-v2-mxnet", "the same with the stride in the 3x3, as MXNet has it", resnet152_v2_mxnet},
    ModelName{"inception-v3", "Szegedy et al. 2016 without the auxiliary head, 3x299x299, 1000 classes", inception_v3},
    ModelName{"inception-v3-224", "the same on images of 224x224 (Horovod's synthetic benchmark)", inception_v3_224},
    ModelName{"cnn3d-64", "four 3-D convolutions and two dense layers on 64^3 voxels (NERSC)", cnn3d_64},
    ModelName{"lstm-4x512", "four LSTM layers of 512 over 64 steps (NERSC)", lstm_4x512},
    ModelName{"encoder-4x512", "a transformer encoder, four layers of 512, 512 tokens", encoder_4x512},
    ModelName{"mobilenet-v1", "Howard et al. 2017, 3x224x224, 1000 classes", mobilenet_v1},
    ModelName{"densenet121", "Huang et al. 2017, 3x224x224, 1000 classes", densenet121},
    ModelName{"yolov3", "Redmon and Farhadi 2018, 3x416x416, three anchors of 80 classes at three scales", yolov3},
    ModelName{"yolov3-voc", "the same, 3x448x448, 20 classes", yolov3_voc},
    ModelName{"unet3d", "Cicek et al. 2016 with padded convolutions, 3x128x128x128, 3 classes a voxel", unet3d},
    ModelName{"unet3d-small", "the same parts, a quarter as wide, 3x32x32x32: trains on a host", unet3d_small},
    ModelName{"unet-5x64", "Ronneberger et al. 2015 as in torchgpipe, 3x192x192, 2 classes a pixel", unet_5x64},
    ModelName{"amoebanet-d-18x256", "Real et al. 2018 as in GPipe and torchgpipe, 3x224x224, 1000 classes",
              amoebanet_d_18x256},
    ModelName{"cosmoflow", "Mathuriya et al. 2018, 1x128x128x128, 3 parameters", cosmoflow},
    ModelName{"cosmoflow-mlperf", "MLPerf HPC, 4x128x128x128, 4 parameters", cosmoflow_mlperf},
    ModelName{"cosmoflow-small", "NERSC cosmoflow-benchmark, 4x128x128x128, 4 parameters", cosmoflow_small},
    ModelName{"cosmoflow-256", "Kahira et al. 2021, 4x256x256x256, 4 parameters", cosmoflow_256},
    ModelName{"cosmoflow-512", "Kahira et al. 2021, 4x512x512x512, 4 parameters", cosmoflow_512},
    ModelName{"deeplabv3plus", "Kurth et al. 2018, ResNet-50 core, 16x768x1152, 3 classes a pixel", deeplabv3plus},
    ModelName{"deepcam", "MLPerf HPC, DeepLabv3+ with an Xception, 16x768x1152, 3 classes a pixel", deepcam},
    ModelName{"tiramisu", "Kurth et al. 2018, growth 32, 16x768x1152, 3 classes a pixel", tiramisu},
    ModelName{"deeplabv3plus-small", "the same parts, narrow and shallow, 16x48x72: trains on --data climate here",
              deeplabv3plus_small},
    ModelName{"tiramisu-small", "the same parts, growth 8, three levels, 16x48x72: trains on --data climate here",
              tiramisu_small},
    ModelName{"hep-cnn", "Kurth et al. 2017, 3x224x224, 2 classes", hep_cnn},
    ModelName{"climatenet", "Kurth et al. 2017, boxes of weather and the input again, 16x768x768", climatenet},
    ModelName{"climatenet-small", "the same parts, three levels, 16x48x72: trains on --data climate here",
              climatenet_small},
    ModelName{"bert-base", "Devlin et al. 2018, encoder, 512 tokens of 30522; bert-base@128: 128 tokens",
              published<"bert-base">},
    ModelName{"bert-large", "Devlin et al. 2018, encoder, 512 tokens of 30522", published<"bert-large">},
    ModelName{"bert-base-masked", "the same, asked for five words in 32, the masked ones of a pre-training",
              published<"bert-base-masked">},
    ModelName{"bert-large-masked", "the same of bert-large", published<"bert-large-masked">},
    ModelName{"bert-base-squad", "bert-base with two scores a token, where an answer begins and ends",
              published<"bert-base-squad">},
    ModelName{"bert-large-squad", "the same of bert-large", published<"bert-large-squad">},
    ModelName{"gpt2-xl", "Radford et al. 2019, decoder, 1024 tokens of 50257", published<"gpt2-xl">},
    ModelName{"gpt3-175b",
              "Brown et al. 2020, decoder, 2048 tokens of 50304; gpt-h1024-a16-l24@2048: a decoder of any size",
              published<"gpt3-175b">},
    ModelName{"megatron-1.7b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-1.7b">},
    ModelName{"megatron-3.6b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-3.6b">},
    ModelName{"megatron-7.5b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-7.5b">},
    ModelName{"megatron-18.4b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-18.4b">},
    ModelName{"megatron-39.1b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-39.1b">},
    ModelName{"megatron-76.1b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-76.1b">},
    ModelName{"megatron-145.6b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-145.6b">},
    ModelName{"megatron-310.1b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-310.1b">},
    ModelName{"megatron-529.6b", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-529.6b">},
    ModelName{"megatron-1t", "Narayanan et al. 2021, table 1, 2048 tokens of 51200", published<"megatron-1t">},
    ModelName{"m6-100b",
              "Yang et al. 2021 (M6-T), mixtures of 512 experts, 512 tokens; gpt-h512-a8-l4-e16: of any size",
              published<"m6-100b">},
    ModelName{"m6-1t", "Yang et al. 2021 (M6-T), mixtures of 960 experts, 512 tokens of 21128", published<"m6-1t">},
    ModelName{"mobilenet-v2", "Sandler et al. 2018, 3x224x224, 1000 classes", mobilenet_v2},
    ModelName{"mobilenet-v3-large", "Howard et al. 2019, 3x224x224, 1000 classes", mobilenet_v3_large},
    ModelName{"mobilenet-v3-small", "Howard et al. 2019, 3x224x224, 1000 classes", mobilenet_v3_small},
    ModelName{"resnext50-32x4d", "Xie et al. 2017, 3x224x224, 1000 classes", resnext50_32x4d},
    ModelName{"resnext101-32x4d", "as NVIDIA trains it, 3x224x224, 1000 classes", resnext101_32x4d},
    ModelName{"resnext101-32x8d", "Xie et al. 2017, 3x224x224, 1000 classes", resnext101_32x8d},
    ModelName{"resnext101-64x4d", "Xie et al. 2017, 3x224x224, 1000 classes", resnext101_64x4d},
    ModelName{"efficientnet-b0", "Tan and Le 2019, 3x224x224, 1000 classes", efficientnet_b<0>},
    ModelName{"efficientnet-b1", "Tan and Le 2019, 3x240x240, 1000 classes", efficientnet_b<1>},
    ModelName{"efficientnet-b2", "Tan and Le 2019 as torchvision has it, 3x288x288 (260 in the paper), 1000 classes",
              efficientnet_b<2>},
    ModelName{"efficientnet-b3", "Tan and Le 2019, 3x300x300, 1000 classes", efficientnet_b<3>},
    ModelName{"efficientnet-b4", "Tan and Le 2019, 3x380x380, 1000 classes", efficientnet_b<4>},
    ModelName{"efficientnet-b5", "Tan and Le 2019, 3x456x456, 1000 classes", efficientnet_b<5>},
    ModelName{"efficientnet-b6", "Tan and Le 2019, 3x528x528, 1000 classes", efficientnet_b<6>},
    ModelName{"efficientnet-b7", "Tan and Le 2019, 3x600x600, 1000 classes", efficientnet_b<7>},
    ModelName{"regnet-x-400mf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-x-400mf">},
    ModelName{"regnet-x-800mf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-x-800mf">},
    ModelName{"regnet-x-1.6gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-x-1.6gf">},
    ModelName{"regnet-x-3.2gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-x-3.2gf">},
    ModelName{"regnet-x-8gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-x-8gf">},
    ModelName{"regnet-x-16gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-x-16gf">},
    ModelName{"regnet-x-32gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-x-32gf">},
    ModelName{"regnet-y-400mf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-y-400mf">},
    ModelName{"regnet-y-800mf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-y-800mf">},
    ModelName{"regnet-y-1.6gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-y-1.6gf">},
    ModelName{"regnet-y-3.2gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-y-3.2gf">},
    ModelName{"regnet-y-8gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-y-8gf">},
    ModelName{"regnet-y-16gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-y-16gf">},
    ModelName{"regnet-y-32gf", "Radosavovic et al. 2020, 3x224x224, 1000 classes", regnet_of<"regnet-y-32gf">},
    ModelName{"convnext-tiny", "Liu et al. 2022, 3x224x224, 1000 classes", convnext_tiny},
    ModelName{"convnext-small", "Liu et al. 2022, 3x224x224, 1000 classes", convnext_small},
    ModelName{"convnext-base", "Liu et al. 2022, 3x224x224, 1000 classes", convnext_base},
    ModelName{"convnext-large", "Liu et al. 2022, 3x224x224, 1000 classes", convnext_large},
    ModelName{"vit-b-16", "Dosovitskiy et al. 2021, 3x224x224, 1000 classes", configured<"vit-b-16">},
    ModelName{"vit-l-16", "Dosovitskiy et al. 2021, 3x224x224, 1000 classes", configured<"vit-l-16">},
    ModelName{"vit-h-14", "Dosovitskiy et al. 2021, 3x224x224, 1000 classes", configured<"vit-h-14">},
    ModelName{"swin-t", "Liu et al. 2021, windows of 7x7, 3x224x224, 1000 classes", configured<"swin-t">},
    ModelName{"swin-s", "Liu et al. 2021, windows of 7x7, 3x224x224, 1000 classes", configured<"swin-s">},
    ModelName{"swin-b", "Liu et al. 2021, windows of 7x7, 3x224x224, 1000 classes", configured<"swin-b">},
    ModelName{"stable-diffusion-unet", "Rombach et al. 2022, version 1.x, 4x64x64 latents, 77 rows of text",
              stable_diffusion_unet},
    ModelName{"llama3-8b", "Llama 3 (Meta 2024), 8192 tokens of 128256; llama3-8b@2048: 2048 tokens",
              configured<"llama3-8b">},
    ModelName{"llama3-70b", "Llama 3 (Meta 2024), 8192 tokens of 128256", configured<"llama3-70b">},
    ModelName{"llama3-405b", "Llama 3.1 (Meta 2024), 8192 tokens of 128256", configured<"llama3-405b">},
    ModelName{"mixtral-8x7b", "Jiang et al. 2024, mixtures of 8 experts, 8192 tokens of 32000",
              configured<"mixtral-8x7b">},
    ModelName{"deepseek-v2", "DeepSeek-AI 2024, mixtures of 160 experts, 8192 tokens of 102400",
              configured<"deepseek-v2">},
    ModelName{"deepseek-v3", "DeepSeek-AI 2024, mixtures of 256 experts, 8192 tokens of 129280",
              configured<"deepseek-v3">},
    ModelName{"qwen3-0.6b", "Qwen3 (Yang et al. 2025), 8192 tokens of 151936", configured<"qwen3-0.6b">},
    ModelName{"qwen3-8b", "Qwen3 (Yang et al. 2025), 8192 tokens of 151936", configured<"qwen3-8b">},
    ModelName{"qwen3-32b", "Qwen3 (Yang et al. 2025), 8192 tokens of 151936", configured<"qwen3-32b">},
    ModelName{"qwen3-30b-a3b", "Qwen3 (Yang et al. 2025), mixtures of 128 experts, 8192 tokens of 151936",
              configured<"qwen3-30b-a3b">},
    ModelName{"qwen3-235b-a22b", "Qwen3 (Yang et al. 2025), mixtures of 128 experts, 8192 tokens of 151936",
              configured<"qwen3-235b-a22b">},
    ModelName{"lstm-ptb-small", "Zaremba et al. 2014, two LSTMs of 200, 20 words of 10000", of_steps<"lstm-ptb-small">},
    ModelName{"lstm-ptb-medium", "Zaremba et al. 2014, two LSTMs of 650, 35 words of 10000",
              of_steps<"lstm-ptb-medium">},
    ModelName{"lstm-ptb-large",
              "Zaremba et al. 2014, two LSTMs of 1500, 35 words of 10000; lstm-ptb-large@70: 70 words",
              of_steps<"lstm-ptb-large">},
    ModelName{"gru-keywords", "Zhang et al. 2017, a GRU of 400 over 49 x 10 cepstra, 12 words: trains on a host",
              of_steps<"gru-keywords">},
    ModelName{"gnmt", "Wu et al. 2016 as MLPerf trains it, eight LSTMs of 1024, 50 + 50 words of 32320; gnmt@30",
              of_steps<"gnmt">},
    ModelName{"gcn-cora", "Kipf and Welling 2017, a graph of 2708 papers and their links, 7 classes a node", gcn_cora},
    ModelName{"gcn-small", "the same layers, a graph of 256 nodes: trains on --data graphs here", gcn_small},
    ModelName{"schnet", "Schuett et al. 2018, molecules of up to 29 atoms, their energy: trains on --data graphs here",
              schnet},
    ModelName{"dlrm-small", "Naumov et al. 2019, 8 tables of a million rows, 512 dense features", dlrm_small},
    ModelName{"dlrm-large", "Kalamkar et al. 2020, 64 tables of 6 million rows of 256, 100 lookups each", dlrm_large},
    ModelName{"dlrm-mlperf", "MLPerf's DLRM on Criteo, 26 tables of 7.2 million rows of 128 on average", dlrm_mlperf},
};

}  // namespace

std::span<const ModelName> zoo() { return networks; }

namespace {

std::optional<Network> load_built_in(const std::string& name) {
    if (std::optional<Network> network = load_transformer(name)) return network;
    if (std::optional<Network> network = load_recurrent(name)) return network;
    const auto found = std::ranges::find(networks, std::string_view{name}, &ModelName::name);
    if (found == std::end(networks)) return std::nullopt;
    return found->build();
}

// What no network by name is called, whatever it begins with: "gpt-13b.onnx", "bert-base@home/config.json", a folder
// "bert-base@home".
bool is_only_a_file(const std::string& name) {
    if (name.ends_with(".onnx") || name.ends_with(".json") || name.find('/') != std::string::npos) return true;
    const std::size_t at = name.find('@');
    return at != std::string::npos && name.find_first_not_of("0123456789", at + 1) != std::string::npos &&
           is_config(name);
}

// A network by its name, which goes before a folder of the same name.
std::optional<Network> load_by_name(const std::string& name, const ImportOptions& options) {
    if (is_only_a_file(name)) return std::nullopt;
    std::optional<Network> network = load_built_in(name);
    // Sizes of a network with a config.json are that file's.
    if (!network || !options.sizes.empty()) {
        if (std::optional<Network> sized = load_published_config(name, options)) {
            network = std::move(sized);
        } else if (network) {
            const auto& [size, value] = *options.sizes.begin();
            throw InputError(
                fmt::format("--sizes {}={}: '{}' leaves no size open; of networks by name, those that read "
                            "text take its length as in bert-base@128",
                            size, value, name));
        }
    }
    if (network && is_config(name))
        network->notes.push_back(
            fmt::format("the network that ships under this name, not the folder ./{} here, which is read as "
                        "--model ./{}",
                        name, name));
    return network;
}

}  // namespace

Network load_network(const std::string& name_or_file, const ImportOptions& options) {
    if (std::optional<Network> network = load_by_name(name_or_file, options)) return *std::move(network);
    std::vector<std::string_view> names;
    for (const ModelName& network : networks) names.push_back(network.name);
    if (is_config(name_or_file)) return load_config(name_or_file, options);
    if (std::error_code unknown; std::filesystem::is_directory(name_or_file, unknown))
        throw InputError(
            fmt::format("{}: is a directory without a config.json; a network is that of Hugging Face, or a "
                        "file FILE.onnx",
                        name_or_file));
    if (name_or_file.ends_with(".onnx") || name_or_file.find('/') != std::string::npos)
        return import_onnx(name_or_file, options);
    throw InputError(fmt::format(
        "unknown network '{}'{}; choose one of {}, a decoder of any size as gpt-h1024-a16-l24@2048, or give "
        "the path of an .onnx file or of a config.json",
        name_or_file, did_you_mean(name_or_file, names), join(names)));
}

std::vector<Network> load_suite(const std::string& name_or_file) {
    if (name_or_file == "climate") return {deeplabv3plus(), tiramisu()};
    return {load_network(name_or_file)};
}

}  // namespace rehearse::models
