// SPDX-License-Identifier: Apache-2.0
// AlexNet in one column, as programs have it: torchvision's (Krizhevsky 2014) without local response normalization, and
// what MXNet, Chainer's and TensorFlow's benchmarks train under its name, which have more filters. Caffe's has the two
// columns of the first paper as groups.
#include <array>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

struct Form {
    const char* name;
    std::int64_t side;
    std::array<int, 5> filters;
    int pad = 0;              // of the first convolution
    bool keeps_last = false;  // pools keep their last window
    bool normalizes = false;  // what the first two pools give, over five neighbouring channels
    bool early = false;       // or rather what they read
    std::int64_t groups = 1;  // of the second, fourth and fifth convolution
};

Network alexnet_of(const Form& form) {
    NetworkBuilder b(form.name, {3, form.side, form.side});
    const auto halve = [&](const char* name, int from) {
        const Shape& shape = b.shape(from);
        return b.max_pool(name, from, form.keeps_last ? keep_last(square(3, 2), shape[1], shape[2]) : square(3, 2));
    };
    const auto halved = [&](const char* pool, const char* norm, int from) {
        if (form.early) return halve(pool, b.lrn(norm, from));
        return form.normalizes ? b.lrn(norm, halve(pool, from)) : halve(pool, from);
    };
    const auto& [first, second, third, fourth, fifth] = form.filters;
    int x = NetworkBuilder::input;
    x = b.relu("relu1", b.conv("conv1", x, first, square(11, 4, form.pad), true));
    x = halved("pool1", "norm1", x);
    x = b.relu("relu2", b.conv("conv2", x, second, square(5, 1, 2), true, form.groups));
    x = halved("pool2", "norm2", x);
    x = b.relu("relu3", b.conv("conv3", x, third, square(3, 1, 1), true));
    x = b.relu("relu4", b.conv("conv4", x, fourth, square(3, 1, 1), true, form.groups));
    x = b.relu("relu5", b.conv("conv5", x, fifth, square(3, 1, 1), true, form.groups));
    x = halve("pool5", x);
    x = b.dropout("drop6", b.flatten("flatten", x), 0.5);
    x = b.relu("relu6", b.dense("fc6", x, 4096));
    x = b.dropout("drop7", x, 0.5);
    x = b.relu("relu7", b.dense("fc7", x, 4096));
    b.loss(b.dense("fc8", x, 1000));
    return b.build();
}

}  // namespace

Network alexnet() { return alexnet_of({"alexnet", 224, {64, 192, 384, 256, 256}, 2}); }

// symbols/alexnet.py of apache/mxnet, example/image-classification.
Network alexnet_mxnet() {
    return alexnet_of({.name = "alexnet-mxnet", .side = 224, .filters = {96, 256, 384, 384, 256}, .normalizes = true});
}

// data/models/alexnet.py of ankahira/paraDL, whose data set cuts images of 226 x 226.
Network alexnet_chainer() {
    return alexnet_of(
        {.name = "alexnet-chainer", .side = 226, .filters = {96, 256, 384, 384, 256}, .keeps_last = true});
}

// models/bvlc_alexnet/train_val.prototxt of BVLC/caffe, on images of 224 as jcjohnson/cnn-benchmarks runs it.
Network alexnet_caffe() {
    return alexnet_of({.name = "alexnet-caffe",
                       .side = 224,
                       .filters = {96, 256, 384, 384, 256},
                       .keeps_last = true,
                       .early = true,
                       .groups = 2});
}

// alexnet_model.py of tensorflow/benchmarks.
Network alexnet_tf() { return alexnet_of({.name = "alexnet-tf", .side = 227, .filters = {64, 192, 384, 384, 256}}); }

}  // namespace rehearse::models
