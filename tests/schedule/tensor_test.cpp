// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/gathered_again.hpp"
#include "models/models.hpp"
#include "models/zoo/transformer.hpp"
#include "schedule/blocks.hpp"
#include "schedule/plan.hpp"
#include "tests/schedule/examples.hpp"
#include "tests/schedule/two_blocks.hpp"

namespace rehearse::schedule {
namespace {

TEST(SplitTensor, ColumnsThenRowsCostOneSum) {
    const Part part = split_tensor(two_dense(), {"tensor", 1, 3});
    check(part.network);
    EXPECT_EQ(layers_and_weights(part),
              "input\n"
              "a 4x1 1 < input\n"
              "relu < a\n"
              "b 1x2 < relu\n"
              "b.sum < b\n"
              "b.bias 2 < b.sum\n"
              "loss < b.bias\n");
    EXPECT_THAT(part.origins[1].cuts, testing::ElementsAre(Cut{0, 1, 1, 1}, Cut{1, 0, 1, 1}));
    EXPECT_THAT(part.origins[3].cuts, testing::ElementsAre(Cut{0, 0, 1, 1}));
    EXPECT_EQ(part.origins[5], (Origin{3, 1, {}, {}}));
    EXPECT_EQ(part.origins[4].layer, -1);
}

// As imported networks see patches of an image as rows: all ranks get the whole first.
TEST(SplitTensor, WhatIsSeenInAnotherShapeIsWhole) {
    Network network{"patches", {{"input", Input{{3, 4, 4}}, {}, {3, 4, 4}}}};
    network.layers.push_back(
        {"conv", Conv{3, 4, 4, 8, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}}, {0}, {8, 2, 2}});
    network.layers.push_back({"view", Flatten{{8, 2, 2}, {8, 4}}, {1}, {8, 4}});
    network.layers.push_back({"turned", Rearrangement{"transpose", {{8, 4}}, {4, 8}, {1, 0}}, {2}, {4, 8}});
    network.layers.push_back({"dense", MatMul{.m = 4, .n = 6, .k = 8}, {3}, {4, 6}});
    network.layers.push_back({"loss", SoftmaxLoss{.classes = 6, .rows = 4}, {4}, {1}});
    check(network);
    const Part part = split_tensor(network, {"tensor", 0, 2});
    check(part.network);
    EXPECT_THAT(layers_and_weights(part),
                testing::HasSubstr("conv 4x3x2x2 < input\nconv.gather < conv\nview < conv.gather\n"));
}

// Layer 0 is cut by columns, 1 by rows and so on; the input of 2 has a gradient, so it is copied; the loss needs three
// numbers of each rank's classes.
TEST(SplitTensor, CutsColumnsAndRowsInTurn) {
    const Part part = split_tensor(tower(3), {"tensor", 0, 2});
    check(part.network);
    EXPECT_EQ(layers_and_weights(part),
              "input\n"
              "dense0 8x4 4 < input\n"
              "dense1 4x8 < dense0\n"
              "dense1.sum < dense1\n"
              "dense1.bias 8 < dense1.sum\n"
              "dense2.copy < dense1.bias\n"
              "dense2 8x4 4 < dense2.copy\n"
              "loss.terms < dense2\n"
              "loss.gather < loss.terms\n"
              "loss < loss.gather\n");
}

// Filter parallelism: outputs are gathered before each next layer, and the gradients of what all read are added up.
TEST(SplitTensor, CutsEachLayerByItsFilters) {
    const Part part = split_tensor(tower(3), {"tensor", 0, 2, false, TensorSplit::filters});
    check(part.network);
    EXPECT_EQ(layers_and_weights(part),
              "input\n"
              "dense0 8x4 4 < input\n"
              "dense0.gather < dense0\n"
              "dense1.copy < dense0.gather\n"
              "dense1 8x4 4 < dense1.copy\n"
              "dense1.gather < dense1\n"
              "dense2.copy < dense1.gather\n"
              "dense2 8x4 4 < dense2.copy\n"
              "loss.terms < dense2\n"
              "loss.gather < loss.terms\n"
              "loss < loss.gather\n");
}

// Channel parallelism: each rank takes its piece of the input, and the ranks add up.
TEST(SplitTensor, CutsEachLayerByItsChannels) {
    const Part part = split_tensor(tower(2), {"tensor", 0, 2, false, TensorSplit::channels});
    check(part.network);
    EXPECT_EQ(layers_and_weights(part),
              "input\n"
              "dense0.slice < input\n"
              "dense0 4x8 < dense0.slice\n"
              "dense0.sum < dense0\n"
              "dense0.bias 8 < dense0.sum\n"
              "dense1.slice < dense0.bias\n"
              "dense1 4x8 < dense1.slice\n"
              "dense1.sum < dense1\n"
              "dense1.bias 8 < dense1.sum\n"
              "loss < dense1.bias\n");
}

// VGG-16 has 13 convolutions and three dense layers. By channels all but the first, whose three colours eight ranks
// cannot share, add up; by filters all gather but the last, of whose classes each rank has its eighth.
TEST(SplitTensor, CommunicatesOnceALayerByFiltersOrChannels) {
    const auto count = [](TensorSplit split, Movement movement) {
        const Part part = split_tensor(models::load_network("vgg16"), {"tensor", 0, 8, false, split});
        check(part.network);
        return std::ranges::count_if(part.network.layers, [&](const Layer& layer) {
            const auto* op = std::get_if<Communication>(&layer.op);
            return op != nullptr && op->movement == movement && !layer.name.starts_with("loss");
        });
    };
    EXPECT_EQ(count(TensorSplit::filters, Movement::gather), 15);
    EXPECT_EQ(count(TensorSplit::filters, Movement::copy), 15);
    EXPECT_EQ(count(TensorSplit::filters, Movement::sum), 0);
    EXPECT_EQ(count(TensorSplit::channels, Movement::sum), 15);
    EXPECT_EQ(count(TensorSplit::channels, Movement::slice), 15);
    EXPECT_EQ(count(TensorSplit::channels, Movement::gather), 0);
    EXPECT_EQ(count(TensorSplit::turns, Movement::sum), 8) << "every second one";
}

TEST(SplitTensor, CutsConvolutionsByFiltersAndChannels) {
    const Part part = split_tensor(residual(), {"tensor", 0, 2});
    check(part.network);
    EXPECT_EQ(layers_and_weights(part),
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
        const Part part = split_tensor(network, {"tensor", 0, 4});
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

TEST(Blocks, AreDealtOutEvenly) {
    const Network network = two_blocks();
    const std::vector<int> ends = even_blocks(network, 2);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(network.layers[static_cast<std::size_t>(ends[0])].name, "layer1.attention_norm");
    EXPECT_EQ(ends[1], static_cast<int>(network.layers.size()));
    EXPECT_THROW(static_cast<void>(even_blocks(network, 3)), InputError);
}

TEST(SplitTensor, RefusesWhatCannotBeCut) {
    EXPECT_THROW(static_cast<void>(split_tensor(two_blocks(), {"tensor", 0, 4, true})), InputError);  // 6 rows on 4
    EXPECT_THROW(static_cast<void>(split_tensor(two_dense(), {"tensor", 0, 7})), InputError);
}

// A group of twelve over two nodes of six would send half of a ring's rounds through one of their NICs.
TEST(LayerSums, GoAsGradientsWhereNodesShareALayer) {
    const Network network = models::load_network("gpt-h48-a12-l1-v96@8");
    const auto sum_of = [&](const char* plan) {
        const Schedule schedule =
            make_schedule(network, sixes(), parse_plan(plan), {.devices = 24, .global_batch = 24});
        for (const Step& step : schedule.classes.at(0).steps) {
            const auto* sum = std::get_if<Communicate>(&step.action);
            if (sum != nullptr && sum->axis == axis_index(schedule.mesh, "tensor")) return to_string(sum->algorithm);
        }
        return std::string{"none"};
    };
    EXPECT_EQ(sum_of("data=4:allreduce=tree,tensor=6"), "ring");  // each group lies in a node
    EXPECT_EQ(sum_of("data=2:allreduce=tree,tensor=12"), "hierarchical(ring,halving)");
    EXPECT_EQ(sum_of("data=2,tensor=12:allreduce=doubling"), "doubling");
}

TEST(Segments, AreTheBlocksThatModulePathsNumber) {
    const Network network = models::load_network("llama3-8b@16");
    int blocks = 0;
    for (const Chunk& segment : segments(network, {0, static_cast<int>(network.layers.size())}))
        blocks += is_block(network, segment) ? 1 : 0;
    EXPECT_EQ(blocks, 32);
    EXPECT_EQ(even_blocks(network, 4).size(), 4);
}

}  // namespace
}  // namespace rehearse::schedule
