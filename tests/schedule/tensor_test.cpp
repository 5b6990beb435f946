// SPDX-License-Identifier: Apache-2.0
#include "schedule/tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

/// "fc 4x3 < input" a layer: name, weights, what it reads.
std::string picture(const Part& part) {
    std::string text;
    for (const Layer& layer : part.network.layers) {
        text += layer.name;
        for (const WeightTensor& tensor : weights(layer.op)) text += " " + to_string(tensor.shape);
        for (const int input : layer.inputs) text += " < " + part.network.layers[static_cast<std::size_t>(input)].name;
        text += "\n";
    }
    return text;
}

TEST(SplitTensor, ColumnsThenRowsCostOneSum) {
    const Part part = split_tensor(two_dense(), "tensor", 1, 3);
    check(part.network);
    EXPECT_EQ(picture(part),
              "input\n"
              "a 4x1 1 < input\n"
              "relu < a\n"
              "b 1x2 < relu\n"
              "b.sum < b\n"
              "b.bias 2 < b.sum\n"
              "loss < b.bias\n");
    EXPECT_THAT(part.origins[1].cuts, testing::ElementsAre(Cut{0, 1, 1, 1}, Cut{1, 0, 1, 1}));
    EXPECT_THAT(part.origins[3].cuts, testing::ElementsAre(Cut{0, 0, 1, 1}));
    EXPECT_EQ(part.origins[5], (Origin{3, 1, {}}));
    EXPECT_EQ(part.origins[4].layer, -1);
}

// Layer 0 is cut by columns, 1 by rows and so on; the input of 2 has a gradient, so it is copied; the loss needs the
// whole of the last.
TEST(SplitTensor, GathersBeforeWhatNeedsTheWhole) {
    const Part part = split_tensor(tower(3), "tensor", 0, 2);
    check(part.network);
    EXPECT_EQ(picture(part),
              "input\n"
              "dense0 8x4 4 < input\n"
              "dense1 4x8 < dense0\n"
              "dense1.sum < dense1\n"
              "dense1.bias 8 < dense1.sum\n"
              "dense2.copy < dense1.bias\n"
              "dense2 8x4 4 < dense2.copy\n"
              "dense2.gather < dense2\n"
              "loss < dense2.gather\n");
}

TEST(SplitTensor, CutsConvolutionsByFiltersAndChannels) {
    const Part part = split_tensor(residual(), "tensor", 0, 2);
    check(part.network);
    EXPECT_EQ(picture(part),
              "input\n"
              "bn 2 2 < input\n"
              "c.copy < bn\n"
              "c 1x2x3x3 < c.copy\n"
              "c.gather < c\n"
              "sum < bn < c.gather\n"
              "flatten < sum\n"
              "drop < flatten\n"
              "f 18x3 < drop\n"
              "loss < f\n");
}

TEST(SplitTensor, KeepsAllWeightsOfEveryNetworkOfTheZoo) {
    for (const char* name : {"alexnet", "vgg16", "resnet50", "resnet32"}) {
        const Network network = models::load_network(name);
        const Part part = split_tensor(network, "tensor", 0, 4);
        SCOPED_TRACE(name);
        check(part.network);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
            const auto tensors = weights(part.network.layers[i].op);
            for (std::size_t t = 0; t < tensors.size(); ++t) {
                const int whole_tensor = part.origins[i].tensor + static_cast<int>(t);
                std::int64_t times = 1;
                for (const Cut& cut : part.origins[i].cuts) times *= cut.tensor == whole_tensor ? 4 : 1;
                sum += times * elements(tensors[t].shape);
            }
        }
        EXPECT_EQ(sum, parameters(network));
        EXPECT_LT(parameters(part.network), parameters(network) / 3);
    }
}

TEST(SplitTensor, RefusesWhatCannotBeCut) {
    EXPECT_THROW(static_cast<void>(split_tensor(two_dense(), "tensor", 0, 7)), InputError);
}

}  // namespace
}  // namespace rehearse::schedule
