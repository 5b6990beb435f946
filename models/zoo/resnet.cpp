// SPDX-License-Identifier: Apache-2.0
// ResNet-50, -101 and -152 in four forms. v1 (He et al. 2016, table 1): where the image halves, the stride is in the
// first 1x1 convolution of the block (3.8 GMAC for ResNet-50). v1.5: it is in the 3x3 (4.09). v2 (He et al. 2016,
// "Identity mappings"), as in tf_cnn_benchmarks: normalization and ReLU before each convolution, stride as v1; MXNet's
// has it in the 3x3. ResNeXt (Xie et al. 2017): v1.5 whose 3x3 convolutions are grouped.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t expansion = 4;  // a block puts out four times as many channels as its 3x3 convolution has

int shortcut(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, std::int64_t stride) {
    if (stride == 1 && b.shape(from)[0] == filters) return from;
    return b.batch_norm(name + ".downsample.bn", b.conv(name + ".downsample.conv", from, filters, square(1, stride)));
}

enum class Form { v1, v1_5, v2, v2_late };

struct Groups {
    std::int64_t count = 1, width = 64;  // of the first stage's 3x3 convolutions
};

int bottleneck(NetworkBuilder& b, const std::string& name, int from, std::int64_t planes, std::int64_t stride,
               Form form, Groups groups) {
    const std::int64_t width = planes * groups.width / 64 * groups.count;
    const bool early = form == Form::v1;
    int x = b.conv(name + ".conv1", from, width, square(1, early ? stride : 1));
    x = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", x));
    x = b.conv(name + ".conv2", x, width, square(3, early ? 1 : stride, 1), false, groups.count);
    x = b.relu(name + ".relu2", b.batch_norm(name + ".bn2", x));
    x = b.conv(name + ".conv3", x, expansion * planes, square(1));
    x = b.batch_norm(name + ".bn3", x);
    x = b.add(name + ".add", x, shortcut(b, name, from, expansion * planes, stride));
    return b.relu(name + ".relu3", x);
}

int preactivated(NetworkBuilder& b, const std::string& name, int from, std::int64_t width, std::int64_t stride,
                 Form form) {
    const bool early = form == Form::v2;
    const int active = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", from));
    const bool same = stride == 1 && b.shape(from)[0] == expansion * width;
    const int past = same ? from : b.conv(name + ".downsample", active, expansion * width, square(1, stride));
    int x = b.conv(name + ".conv1", active, width, square(1, early ? stride : 1));
    x = b.relu(name + ".relu2", b.batch_norm(name + ".bn2", x));
    x = b.conv(name + ".conv2", x, width, square(3, early ? 1 : stride, 1));
    x = b.relu(name + ".relu3", b.batch_norm(name + ".bn3", x));
    return b.add(name + ".add", b.conv(name + ".conv3", x, expansion * width, square(1)), past);
}

Network resnet(const std::string& name, const std::array<int, 4>& blocks, Form form = Form::v1_5, Groups groups = {}) {
    const bool before = form == Form::v2 || form == Form::v2_late;
    NetworkBuilder b(name, {3, 224, 224});
    int x = b.conv("conv1", NetworkBuilder::input, 64, square(7, 2, 3));
    x = b.relu("relu1", b.batch_norm("bn1", x));
    x = b.max_pool("pool1", x, square(3, 2, 1));
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        for (int block = 0; block < blocks[stage]; ++block) {
            const std::string block_name = fmt::format("layer{}.{}", stage + 1, block);
            const std::int64_t width = 64 << stage, stride = stage > 0 && block == 0 ? 2 : 1;
            x = before ? preactivated(b, block_name, x, width, stride, form)
                       : bottleneck(b, block_name, x, width, stride, form, groups);
        }
    }
    if (before) x = b.relu("relu5", b.batch_norm("bn5", x));
    x = b.flatten("flatten", b.global_average_pool("pool5", x));
    b.loss(b.dense("fc", x, 1000));
    return b.build();
}

}  // namespace

Network resnet50() { return resnet("resnet50", {3, 4, 6, 3}); }
Network resnet101() { return resnet("resnet101", {3, 4, 23, 3}); }
Network resnet152() { return resnet("resnet152", {3, 8, 36, 3}); }
Network resnet50_v1() { return resnet("resnet50-v1", {3, 4, 6, 3}, Form::v1); }
Network resnet101_v1() { return resnet("resnet101-v1", {3, 4, 23, 3}, Form::v1); }
Network resnet152_v1() { return resnet("resnet152-v1", {3, 8, 36, 3}, Form::v1); }
Network resnet50_v2() { return resnet("resnet50-v2", {3, 4, 6, 3}, Form::v2); }
Network resnet101_v2() { return resnet("resnet101-v2", {3, 4, 23, 3}, Form::v2); }
Network resnet152_v2() { return resnet("resnet152-v2", {3, 8, 36, 3}, Form::v2); }

// symbols/resnet.py of apache/mxnet, example/image-classification.
Network resnet152_v2_mxnet() { return resnet("resnet152-v2-mxnet", {3, 8, 36, 3}, Form::v2_late); }

Network resnext50_32x4d() { return resnet("resnext50-32x4d", {3, 4, 6, 3}, Form::v1_5, {32, 4}); }
Network resnext101_32x4d() { return resnet("resnext101-32x4d", {3, 4, 23, 3}, Form::v1_5, {32, 4}); }
Network resnext101_32x8d() { return resnet("resnext101-32x8d", {3, 4, 23, 3}, Form::v1_5, {32, 8}); }
Network resnext101_64x4d() { return resnet("resnext101-64x4d", {3, 4, 23, 3}, Form::v1_5, {64, 4}); }

}  // namespace rehearse::models
