// SPDX-License-Identifier: Apache-2.0
// Parameter and multiply-add counts as the papers and torchvision's model pages give them; shapes as in the papers'
// tables.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

bool counts(const Op& op) {
    const auto kind = kind_of(op);
    return kind == "conv2d" || kind == "conv3d" || kind == "convtranspose" || kind == "matmul";
}

// Multiply-adds of convolutions and dense layers, as the literature counts them.
double giga_macs(const Network& network) {
    Flops sum;
    for (const Layer& layer : network.layers)
        if (counts(layer.op)) sum += flops(layer.op, Pass::forward);
    return sum.value / 2 / 1e9;
}

Shape shape_at(const Network& network, std::string_view layer) {
    const auto index = find_layer(network, layer);
    return index ? network.layers[static_cast<std::size_t>(*index)].output : Shape{};
}

struct Published {
    const char* name;
    std::int64_t parameters;
    double giga_macs, tolerance;  // half a unit of the last published digit, plus the biases' additions
    std::int64_t classes;
};

void PrintTo(const Published& it, std::ostream* out) { *out << it.name; }

// torchvision.models: parameters and GFLOPS (multiply-adds) of AlexNet, VGG, ResNet. LeNet-5: 61,706 without the
// trainable sub-sampling. GoogLeNet: Caffe's bvlc_googlenet. ResNet-32: He et al. 2016, table 6 (0.46 M), 69 M
// multiply-adds. ResNet-50 with the stride in the first 1x1: 3.86 (timm, MLPerf's comparison of v1 and v1.5). Inception
// v3: torchvision's less its auxiliary head.
class Zoo : public testing::TestWithParam<Published> {};

TEST_P(Zoo, HasThePublishedParametersAndMultiplyAdds) {
    const Network network = load_network(GetParam().name);
    EXPECT_EQ(network.name, GetParam().name);
    EXPECT_EQ(parameters(network), GetParam().parameters);
    EXPECT_NEAR(giga_macs(network), GetParam().giga_macs, GetParam().tolerance);
    EXPECT_NO_THROW(check(network));
    EXPECT_EQ(network.layers.back().op, Op{SoftmaxLoss{GetParam().classes}});
}

INSTANTIATE_TEST_SUITE_P(
    Published, Zoo,
    testing::Values(
        Published{"lenet5", 61'706, 0.000417, 0.00001, 10}, Published{"alexnet", 61'100'840, 0.71, 0.006, 1000},
        // 62,378,344 and 1.135 of one column with 96 filters; by hand for other images.
        Published{"alexnet-chainer", 62'378'344, 1.131, 0.006, 1000},
        Published{"alexnet-caffe", 60'965'224, 0.7206, 0.002, 1000},
        Published{"alexnet-mxnet", 50'844'008, 1.009, 0.006, 1000},
        Published{"alexnet-tf", 61'838'248, 0.838, 0.006, 1000}, Published{"vgg16", 138'357'544, 15.47, 0.02, 1000},
        Published{"vgg16-226", 138'357'544 + 512 * (64 - 49) * 4096, 16.29, 0.02, 1000},
        Published{"vgg19", 143'667'240, 19.63, 0.02, 1000}, Published{"googlenet", 6'998'552, 1.58, 0.01, 1000},
        // 13,378,280 weights in Caffe's file; operations by hand from here on.
        Published{"googlenet-heads", 13'378'280, 1.591, 0.002, 1000},
        Published{"googlenet-mxnet", 6'998'552, 1.895, 0.002, 1000},
        Published{"googlenet-torch", 7'001'852, 1.506, 0.002, 1008},
        // By hand: sums over in x out x 9 x pixels, and in x out.
        Published{"vgg8", 3'248'202, 0.15487, 0.001, 10}, Published{"mlp", 4'206'602, 0.0042045, 0.00001, 10},
        Published{"resnet32", 464'154, 0.069, 0.0006, 10}, Published{"resnet50", 25'557'032, 4.09, 0.006, 1000},
        Published{"resnet101", 44'549'160, 7.80, 0.006, 1000}, Published{"resnet152", 60'192'808, 11.51, 0.006, 1000},
        Published{"resnet50-v1", 25'557'032, 3.86, 0.01, 1000},
        Published{"resnet152-v2-mxnet", 60'185'256, 11.51, 0.02, 1000},
        Published{"inception-v3", 27'161'264 - 3'326'696, 5.71, 0.01, 1000},
        Published{"inception-v3-224", 27'161'264 - 3'326'696, 2.84, 0.02, 1000},
        Published{"mobilenet-v1", 4'231'976, 0.569, 0.0006, 1000},
        Published{"densenet121", 7'978'856, 2.83, 0.006, 1000}),
    [](const auto& test) {
        std::string name = test.param.name;
        std::ranges::replace(name, '-', '_');
        return name;
    });

// The constructors of the reference implementation, summed layer by layer by a script that follows its source, with the
// multiply-adds of each. Its sixteen middle blocks have 3 x (728 x 9 + 728^2 + 2 x 728) weights each.
TEST(DeepCam, HasTheWeightsAndMultiplyAddsOfItsReference) {
    const Network network = load_network("deepcam");
    EXPECT_EQ(parameters(network), 56'454'720);
    EXPECT_NEAR(giga_macs(network), 327.67, 0.2);
    EXPECT_EQ(shape_at(network, "block1.add"), (Shape{128, 192, 288})) << "low-level features, a quarter";
    EXPECT_EQ(shape_at(network, "conv5.relu"), (Shape{2048, 48, 72}));
    EXPECT_EQ(network.layers.back().op, (Op{SoftmaxLoss{3, {768, 1152}, climate_class_weights()}}));
    std::int64_t middle = 0;
    for (const Layer& layer : network.layers)
        if (layer.name.starts_with("block7.")) middle += parameters(layer.op);
    EXPECT_EQ(middle, 3 * (728 * 9 + 728 * 728 + 2 * 728));
}

// Darknet prints 65.86 billion operations for 416 x 416, which are two a multiply-add; 61.9 M weights of 75
// convolutions, of which the published weights' file has 62,001,757 numbers with running means and variances.
TEST(YoloV3, HasThePublishedWeightsAndMultiplyAdds) {
    const Network network = load_network("yolov3");
    EXPECT_EQ(std::ranges::count_if(network.layers, [](const Layer& layer) { return kind_of(layer.op) == "conv2d"; }),
              75);
    EXPECT_EQ(parameters(network), 61'949'149);
    EXPECT_EQ(parameters(network) + network.state, 62'001'757);
    EXPECT_NEAR(giga_macs(network), 65.86 / 2, 0.01);
    EXPECT_EQ(shape_at(network, "block5.4.add"), (Shape{1024, 13, 13}));
    EXPECT_EQ(shape_at(network, "boxes8.scores"), (Shape{255, 52, 52}));
    // 60 classes less at three anchors of three scales, whose convolutions read 256, 512 and 1,024 channels.
    EXPECT_EQ(parameters(network) - parameters(load_network("yolov3-voc")), 60 * 3 * (256 + 512 + 1024 + 3));
}

// Filters of its program, without biases; after the seventh convolution there are 128 channels of 3^3 or 5^3.
TEST(WideCosmoFlow, HasTheWeightsOfItsProgram) {
    const std::int64_t convs =
        4 * 16 * 27 + 16 * 32 * 27 + 32 * 64 * 27 + 64 * 128 * 27 + 128 * 256 * 8 + 256 * 256 * 8 + 256 * 128 * 8;
    const auto dense = [](std::int64_t voxels) { return (128 * voxels + 1) * 2048 + (2048 + 1) * 256 + (256 + 1) * 4; };
    EXPECT_EQ(parameters(load_network("cosmoflow-256")), convs + dense(27));
    EXPECT_EQ(parameters(load_network("cosmoflow-512")), convs + dense(125));
}

// 4 x 8 x 16 + 16, four times 8 x 16 x 16 + 16, 432 x 128 + 128, 128 x 64 + 64, 64 x 4 + 4: the 0.0727 M of its table.
TEST(CosmoFlowSmall, HasItsParameters) {
    EXPECT_EQ(parameters(load_network("cosmoflow-small")), 528 + 4 * 2064 + 55424 + 8256 + 260);
}

// Filters of 3^3 with biases and two figures of normalization each, down from 3 to 128 channels and up again, 8 weights
// a pair of channels on the way up, three scores of 16: added up by hand.
TEST(UNet3dSmall, HasItsParameters) {
    const auto conv = [](std::int64_t from, std::int64_t to) { return from * to * 27 + 3 * to; };
    const std::int64_t down = conv(3, 8) + conv(8, 16) + conv(16, 16) + conv(16, 32) + conv(32, 32) + conv(32, 64) +
                              conv(64, 64) + conv(64, 128);
    const std::int64_t up = 8 * (128 * 128 + 64 * 64 + 32 * 32) + conv(192, 64) + conv(64, 64) + conv(96, 32) +
                            conv(32, 32) + conv(48, 16) + conv(16, 16);
    EXPECT_EQ(parameters(load_network("unet3d-small")), down + up + 3 * 17);
}

// PyTorch's LSTM has 4 x 512 x (512 + 512 + 2) weights a layer; a layer of the encoder, 512 wide between its dense
// layers, 6 x 512^2 beside biases and norms, and there are 1,024 words.
TEST(NerscNetworks, HaveTheWeightsOfTheirOriginals) {
    // Filters of 3^3 and biases; 128 channels of 4^3 to 256, to 4.
    EXPECT_EQ(parameters(load_network("cnn3d-64")),
              16 * 28 + 32 * (16 * 27 + 1) + 64 * (32 * 27 + 1) + 128 * (64 * 27 + 1) + 256 * 8193 + 4 * 257);
    EXPECT_EQ(parameters(load_network("lstm-4x512")), 4 * 4 * 512 * 1026);
    EXPECT_NEAR(static_cast<double>(parameters(load_network("encoder-4x512"))), 4 * 6 * 512.0 * 512 + 1024 * 512,
                0.09 * 6.8e6);
}

// Networks whose papers give their size and the operations of training one sample: forward and both gradients, 2 a
// multiply-add. `share` of the published operations is ours to within 0.2 %.
struct Trained {
    const char* name;
    double parameters, parameter_tolerance;  // relative
    double giga_flops, share;
};

void PrintTo(const Trained& it, std::ostream* out) { *out << it.name; }

std::int64_t parameters_without_norms(const Network& network) {
    std::int64_t sum = 0;
    for (const Layer& layer : network.layers)
        if (kind_of(layer.op) != "batchnorm") sum += parameters(layer.op);
    return sum;
}

class TrainedZoo : public testing::TestWithParam<Trained> {};

TEST_P(TrainedZoo, HasThePublishedSizeAndOperations) {
    const Network network = load_network(GetParam().name);
    EXPECT_EQ(network.name, GetParam().name);
    EXPECT_NEAR(static_cast<double>(parameters_without_norms(network)) / GetParam().parameters, 1,
                GetParam().parameter_tolerance);
    if (GetParam().giga_flops > 0) {
        EXPECT_NEAR(3 * 2 * giga_macs(network) / GetParam().giga_flops, GetParam().share, 0.002);
    }
    EXPECT_NO_THROW(check(network));
    const auto readers = consumers(network);
    for (std::size_t i = 0; i + 1 < readers.size(); ++i)
        EXPECT_FALSE(readers[i].empty()) << network.layers[i].name << " is made for nobody";
}

// Nine convolutions, five transposed ones, 302.1 MiB (Kurth et al. 2017, table 2). Multiply-adds by hand, in units of
// 25 x 24^2: an encoder's layer reads and writes a quarter of the pixels that the one before it did.
TEST(ClimateNet, HasThePublishedLayersAndSize) {
    const Network network = load_network("climatenet");
    const auto layers = [&](std::string_view kind) {
        return std::ranges::count_if(network.layers, [&](const Layer& layer) { return kind_of(layer.op) == kind; });
    };
    EXPECT_EQ(layers("conv2d"), 9);
    EXPECT_EQ(layers("convtranspose"), 5);
    EXPECT_NEAR(static_cast<double>(parameters(network)) * 4 / 1048576, 302.1, 0.05);
    const double encoder = 16 * 128 * 256.0 + 128 * 256 * 64.0 + 256 * 512 * 16.0 + 512 * 768 * 4.0 + 768 * 1024;
    const double heads = 9 * 1024 * 1280.0 + 9 * 1280 * 10.0;
    EXPECT_NEAR(giga_macs(network), 576e-9 * (2 * 25 * encoder + heads), 0.1);
    EXPECT_EQ(shape_at(network, "relu5"), (Shape{1024, 24, 24}));
    EXPECT_EQ(shape_at(network, "deconv1"), (Shape{16, 768, 768}));
    EXPECT_EQ(shape_at(load_network("climatenet-small"), "deconv1"), (Shape{16, 48, 72}));
}

// 3-D U-Net: Cicek et al. 2016, section 3, exact; its batch norms are not counted there.
// CosmoFlow: Mathuriya et al. 2018: 28.15 MB of f32; 69.33 GFLOP a sample, of which the layers' sizes account for 92 %.
// CosmoFlow of MLPerf HPC: its code by hand: layer 1 has 27 * 4 * 32 multiply-adds a voxel of 128^3, layer i > 1
// 27 * 2^(2 i + 7) a voxel of (2^(8 - i))^3, together 34.4 G, thrice 206.6 GFLOP; 8.9 million weights. Tiramisu and
// DeepLabv3+: Kurth et al. 2018, table 2: 4.188 and 14.41 TFLOP, of DeepLabv3+ 90 % by the layers of its published
// code; 43.7 million weights are counted from that code. HEP-CNN: Kurth et al. 2017, table 2: 2.3 MiB.
INSTANTIATE_TEST_SUITE_P(Published, TrainedZoo,
                         testing::Values(Trained{"unet3d", 19'069'955, 0, 0, 0},
                                         Trained{"cosmoflow", 28.15e6 / 4, 1e-3, 69.33, 0.923},
                                         Trained{"cosmoflow-mlperf", 8.9e6, 1e-2, 206.6, 1},
                                         Trained{"tiramisu", 7.5e6, 1e-2, 4188, 1},
                                         Trained{"deeplabv3plus", 43.7e6, 1e-3, 14410, 0.904},
                                         Trained{"hep-cnn", 2.3 * 1048576 / 4, 0.03, 0, 0}),
                         [](const auto& test) {
                             std::string name = test.param.name;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// torchgpipe's table of the largest U-Nets that fit: 362.2 M, 2.21 B and 4.99 B weights (Kim et al. 2020).
TEST(UNet, HasThePublishedNumbersOfWeights) {
    EXPECT_NEAR(static_cast<double>(parameters(unet(6, 72))), 362.2e6, 0.2e6);
    EXPECT_NEAR(static_cast<double>(parameters(unet(11, 128))), 2.21e9, 0.005e9);
    EXPECT_NEAR(static_cast<double>(parameters(unet(24, 128))), 4.99e9, 0.005e9);
    EXPECT_EQ(shape_at(load_network("unet-5x64"), "up0.concat"), (Shape{128, 192, 192}));
}

// The same table's AmoebaNet-D: 81.5 M, 319 M, 1.06 B and 1.84 B.
TEST(AmoebaNetD, HasThePublishedNumbersOfWeights) {
    EXPECT_NEAR(static_cast<double>(parameters(amoebanet_d(18, 208))), 81.5e6, 0.05e6);
    EXPECT_NEAR(static_cast<double>(parameters(amoebanet_d(18, 416))), 319e6, 0.5e6);
    EXPECT_NEAR(static_cast<double>(parameters(amoebanet_d(36, 544))), 1.06e9, 0.005e9);
    EXPECT_NEAR(static_cast<double>(parameters(amoebanet_d(72, 512))), 1.84e9, 0.005e9);
}

TEST(ZooTable, ListsEachNetworkOnceWithASummary) {
    std::set<std::string_view> names;
    for (const ModelName& entry : zoo()) {
        EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
        EXPECT_EQ(entry.build().name, entry.name);
        EXPECT_FALSE(entry.summary.empty());
    }
}

TEST(ZooTable, ASuiteIsOneNetworkOrBothClimateNetworks) {
    EXPECT_EQ(load_suite("lenet5").size(), 1u);
    ASSERT_EQ(load_suite("climate").size(), 2u);
    EXPECT_EQ(load_suite("climate")[1].name, "tiramisu");
}

TEST(ZooTable, AnUnknownNameIsAnsweredWithTheNearestOne) {
    EXPECT_THAT([] { load_network("resnet5"); }, ThrowsMessage<InputError>(HasSubstr("did you mean 'resnet50'?")));
    EXPECT_THAT([] { load_network(""); }, ThrowsMessage<InputError>(HasSubstr("choose one of lenet5, alexnet")));
}

TEST(GoogLeNet, ShrinksAsInTableOneOfThePaper) {
    const Network network = load_network("googlenet");
    EXPECT_EQ(shape_at(network, "conv1"), (Shape{64, 112, 112}));
    EXPECT_EQ(shape_at(network, "pool1"), (Shape{64, 56, 56}));
    EXPECT_EQ(shape_at(network, "conv2"), (Shape{192, 56, 56}));
    EXPECT_EQ(shape_at(network, "pool2"), (Shape{192, 28, 28}));
    EXPECT_EQ(shape_at(network, "3a/concat"), (Shape{256, 28, 28}));
    EXPECT_EQ(shape_at(network, "3b/concat"), (Shape{480, 28, 28}));
    EXPECT_EQ(shape_at(network, "4a/concat"), (Shape{512, 14, 14}));
    EXPECT_EQ(shape_at(network, "4e/concat"), (Shape{832, 14, 14}));
    EXPECT_EQ(shape_at(network, "5b/concat"), (Shape{1024, 7, 7}));
    EXPECT_EQ(shape_at(network, "pool5"), (Shape{1024, 1, 1}));
}

TEST(CosmoFlow, EndsIn256ChannelsOfTwoCubed) {
    const Network network = load_network("cosmoflow");
    EXPECT_EQ(shape_at(network, "conv1"), (Shape{16, 126, 126, 126}));
    EXPECT_EQ(shape_at(network, "conv2"), (Shape{32, 60, 60, 60}));
    EXPECT_EQ(shape_at(network, "relu7"), (Shape{256, 2, 2, 2}));
}

TEST(ClimateNetworks, ScoreEveryPixel) {
    const Network deep = load_network("deeplabv3plus");
    EXPECT_EQ(shape_at(deep, "block1.3.conv1"), (Shape{64, 192, 288}));
    EXPECT_EQ(shape_at(deep, "block4.3.add"), (Shape{2048, 96, 144}));
    EXPECT_EQ(shape_at(deep, "up4.concat"), (Shape{304, 192, 288}));
    EXPECT_EQ(shape_at(deep, "scores"), (Shape{3, 768, 1152}));
    const Network tiramisu = load_network("tiramisu");
    EXPECT_EQ(shape_at(tiramisu, "skip3"), (Shape{384, 96, 144}));
    EXPECT_EQ(shape_at(tiramisu, "back3.added"), (Shape{160, 48, 72}));
    EXPECT_EQ(shape_at(tiramisu, "scores"), (Shape{3, 768, 1152}));
}

TEST(ResNet, HalvesTheImageInThe3x3OfEachStagesFirstBlock) {
    const Network network = load_network("resnet50");
    EXPECT_EQ(shape_at(network, "pool1"), (Shape{64, 56, 56}));
    EXPECT_EQ(shape_at(network, "layer1.2.relu3"), (Shape{256, 56, 56}));
    EXPECT_EQ(shape_at(network, "layer2.0.conv1"), (Shape{128, 56, 56}));
    EXPECT_EQ(shape_at(network, "layer2.0.conv2"), (Shape{128, 28, 28}));
    EXPECT_EQ(shape_at(network, "layer4.2.relu3"), (Shape{2048, 7, 7}));
    EXPECT_EQ(network.state, 2 * 26'560);  // torchvision's buffers: 26,560 means and as many variances
}

TEST(ResNet32, ShortcutsHaveNoParameters) {
    const Network network = load_network("resnet32");
    EXPECT_EQ(shape_at(network, "layer1.4.relu2"), (Shape{16, 32, 32}));
    EXPECT_EQ(shape_at(network, "layer2.0.sample"), (Shape{16, 16, 16}));
    EXPECT_EQ(shape_at(network, "layer2.0.pad"), (Shape{32, 16, 16}));
    EXPECT_EQ(shape_at(network, "layer3.4.relu2"), (Shape{64, 8, 8}));
    int convolutions = 0;
    for (const Layer& layer : network.layers) convolutions += kind_of(layer.op) == "conv2d" ? 1 : 0;
    EXPECT_EQ(convolutions, 31);  // and one dense layer
}

TEST(LeNet5, ReadsA32x32Image) {
    const Network network = load_network("lenet5");
    EXPECT_EQ(shape_at(network, "input"), (Shape{1, 32, 32}));
    EXPECT_EQ(shape_at(network, "pool2"), (Shape{16, 5, 5}));
}

}  // namespace
}  // namespace rehearse::models
