// SPDX-License-Identifier: Apache-2.0
// GoogLeNet (Szegedy et al. 2015, table 1) without its auxiliary heads: biases and local response normalization, no
// batch normalization. Pools keep their last window, so that images shrink 112, 56, 28, 14, 7 as in the table; files
// converted from Caffe often lost that (27, 13, 6) and have the same weights. Beside it what programs train under its
// name: Caffe's with both heads, MXNet's and Torch's without normalization.
#include <optional>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

// The columns of table 1.
struct Inception {
    const char* name;
    int one, reduce3, three, reduce5, five, pool;
};

int conv_relu(NetworkBuilder& b, const std::string& name, int from, int filters, Window window) {
    return b.relu(name + "/relu", b.conv(name, from, filters, window, true));
}

//        +-> 1x1 --------------+
//   from +-> 1x1 -> 3x3 -------+-> concat
//        +-> 1x1 -> 5x5 -------+
//        +-> 3x3 pool -> 1x1 --+
int inception(NetworkBuilder& b, const Inception& m, int from) {
    const std::string name = m.name;
    const int one = conv_relu(b, name + "/1x1", from, m.one, square(1));
    const int reduce3 = conv_relu(b, name + "/3x3_reduce", from, m.reduce3, square(1));
    const int three = conv_relu(b, name + "/3x3", reduce3, m.three, square(3, 1, 1));
    const int reduce5 = conv_relu(b, name + "/5x5_reduce", from, m.reduce5, square(1));
    const int five = conv_relu(b, name + "/5x5", reduce5, m.five, square(5, 1, 2));
    const int pool = b.max_pool(name + "/pool", from, square(3, 1, 1));
    const int projection = conv_relu(b, name + "/pool_proj", pool, m.pool, square(1));
    return b.concat(name + "/concat", {one, three, five, projection});
}

// What the programs differ in.
struct Form {
    const char* name;
    std::int64_t side = 224;
    bool normalizes = true;
    bool heads = false;            // two more classifiers, after 4a and 4d
    bool keeps_last = true;        // the pools that halve keep their last window
    bool pads = false;             // the first two of them and the last are padded by a pixel
    int filters_4a = 208;          // of its 3x3
    std::int64_t scores = 1000;    // that the last layer gives
    std::optional<double> kept{};  // by dropout before it
};

class GoogLeNet {
public:
    explicit GoogLeNet(const Form& form) : form_(form), b_(form.name, {3, form.side, form.side}) {}

    Network build() {
        int x = conv_relu(b_, "conv1", NetworkBuilder::input, 64, square(7, 2, 3));
        x = normalized("norm1", halve("pool1", x, form_.pads));
        x = conv_relu(b_, "conv2_reduce", x, 64, square(1));
        x = normalized("norm2", conv_relu(b_, "conv2", x, 192, square(3, 1, 1)));
        x = halve("pool2", x, form_.pads);
        x = inception(b_, {"3a", 64, 96, 128, 16, 32, 32}, x);
        x = inception(b_, {"3b", 128, 128, 192, 32, 96, 64}, x);
        x = halve("pool3", x);
        const int first = x = inception(b_, {"4a", 192, 96, form_.filters_4a, 16, 48, 64}, x);
        x = inception(b_, {"4b", 160, 112, 224, 24, 64, 64}, x);
        x = inception(b_, {"4c", 128, 128, 256, 24, 64, 64}, x);
        const int second = x = inception(b_, {"4d", 112, 144, 288, 32, 64, 64}, x);
        x = inception(b_, {"4e", 256, 160, 320, 32, 128, 128}, x);
        x = halve("pool4", x, form_.pads);
        x = inception(b_, {"5a", 256, 160, 320, 32, 128, 128}, x);
        x = inception(b_, {"5b", 384, 192, 384, 48, 128, 128}, x);
        x = b_.global_average_pool("pool5", x);
        if (form_.kept) x = b_.dropout("dropout", x, *form_.kept);
        const int scores = b_.dense("classifier", b_.flatten("flatten", x), form_.scores);
        if (form_.heads) {
            head("loss1", first);
            head("loss2", second);
        }
        b_.loss(scores);
        return b_.build();
    }

private:
    int halve(const std::string& name, int from, bool pads = false) {
        const Shape& shape = b_.shape(from);
        const Window window = square(3, 2, pads ? 1 : 0);
        return b_.max_pool(name, from, form_.keeps_last ? keep_last(window, shape[1], shape[2]) : window);
    }

    int normalized(const std::string& name, int from) { return form_.normalizes ? b_.lrn(name, from) : from; }

    void head(const std::string& name, int from) {
        int x = conv_relu(b_, name + "/conv", b_.average_pool(name + "/pool", from, square(5, 3)), 128, square(1));
        x = b_.dense(name + "/fc", b_.flatten(name + "/flatten", x), 1024);
        x = b_.dropout(name + "/dropout", b_.relu(name + "/relu", x), 0.3);
        x = b_.dense(name + "/classifier", x, form_.scores);
        b_.layer(name, SoftmaxLoss{form_.scores}, {x});
    }

    Form form_;
    NetworkBuilder b_;
};

}  // namespace

Network googlenet() { return GoogLeNet({.name = "googlenet", .kept = 0.6}).build(); }

// models/bvlc_googlenet/train_val.prototxt of BVLC/caffe.
Network googlenet_heads() { return GoogLeNet({.name = "googlenet-heads", .heads = true, .kept = 0.6}).build(); }

// symbols/googlenet.py of apache/mxnet, example/image-classification, whose last pool of 7 x 7 needs images of 256.
Network googlenet_mxnet() {
    return GoogLeNet({.name = "googlenet-mxnet", .side = 256, .normalizes = false, .keeps_last = false}).build();
}

// googlenet.lua of soumith/inception.torch: its normalizations are made and never added to the model, its dropout is
// commented out.
Network googlenet_torch() {
    return GoogLeNet({.name = "googlenet-torch",
                      .normalizes = false,
                      .keeps_last = false,
                      .pads = true,
                      .filters_4a = 204,
                      .scores = 1008})
        .build();
}

}  // namespace rehearse::models
