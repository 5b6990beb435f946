// SPDX-License-Identifier: Apache-2.0
// AlexNet in the one-column form that torchvision ships (Krizhevsky 2014): no groups, no local response normalization.
#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {

Network alexnet() {
    NetworkBuilder b("alexnet", {3, 224, 224});
    int x = NetworkBuilder::input;
    x = b.relu("relu1", b.conv("conv1", x, 64, square(11, 4, 2), true));
    x = b.max_pool("pool1", x, square(3, 2));
    x = b.relu("relu2", b.conv("conv2", x, 192, square(5, 1, 2), true));
    x = b.max_pool("pool2", x, square(3, 2));
    x = b.relu("relu3", b.conv("conv3", x, 384, square(3, 1, 1), true));
    x = b.relu("relu4", b.conv("conv4", x, 256, square(3, 1, 1), true));
    x = b.relu("relu5", b.conv("conv5", x, 256, square(3, 1, 1), true));
    x = b.max_pool("pool5", x, square(3, 2));
    x = b.dropout("drop6", b.flatten("flatten", x), 0.5);
    x = b.relu("relu6", b.dense("fc6", x, 4096));
    x = b.dropout("drop7", x, 0.5);
    x = b.relu("relu7", b.dense("fc7", x, 4096));
    b.loss(b.dense("fc8", x, 1000));
    return b.build();
}

}  // namespace rehearse::models
