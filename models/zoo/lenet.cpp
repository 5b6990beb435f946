// SPDX-License-Identifier: Apache-2.0
// LeNet-5 (LeCun et al. 1998, figure 2) on 1x32x32 images, in today's form: C3 sees all maps of S2, ReLU and max pools
// for the scaled tanh and trainable sub-sampling. C5, a convolution whose output is one pixel, is said as a dense
// layer.
#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {

Network lenet5() {
    NetworkBuilder b("lenet5", {1, 32, 32});
    int x = NetworkBuilder::input;
    x = b.relu("relu1", b.conv("conv1", x, 6, square(5), true));
    x = b.max_pool("pool1", x, square(2, 2));
    x = b.relu("relu2", b.conv("conv2", x, 16, square(5), true));
    x = b.max_pool("pool2", x, square(2, 2));
    x = b.flatten("flatten", x);
    x = b.relu("relu3", b.dense("fc1", x, 120));
    x = b.relu("relu4", b.dense("fc2", x, 84));
    b.loss(b.dense("fc3", x, 10));
    return b.build();
}

}  // namespace rehearse::models
