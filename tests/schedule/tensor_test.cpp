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
#include "schedule/axes/stages.hpp"
#include "schedule/blocks.hpp"
#include "schedule/plan.hpp"
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
    const Part part = split_tensor(two_dense(), {"tensor", 1, 3});
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
    EXPECT_THAT(picture(part), testing::HasSubstr("conv 4x3x2x2 < input\nconv.gather < conv\nview < conv.gather\n"));
}

// Layer 0 is cut by columns, 1 by rows and so on; the input of 2 has a gradient, so it is copied; the loss needs three
// numbers of each rank's classes.
TEST(SplitTensor, CutsColumnsAndRowsInTurn) {
    const Part part = split_tensor(tower(3), {"tensor", 0, 2});
    check(part.network);
    EXPECT_EQ(picture(part),
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
    EXPECT_EQ(picture(part),
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
    EXPECT_EQ(picture(part),
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

Network two_blocks() {
    return models::transformer(
        {.name = "two", .layers = 2, .hidden = 8, .heads = 4, .vocabulary = 12, .positions = 6, .keep = 1}, 6);
}

// Shoeybi et al. 2019, figure 3: queries, keys and values by columns, each with its heads; the projection by rows.
TEST(SplitTensor, CutsAttentionByHeads) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2});
    check(part.network);
    EXPECT_THAT(picture(part), testing::StartsWith("input\n"
                                                   "embedding 6x8 6x8 < input\n"
                                                   "embedding.sum < embedding\n"
                                                   "layer0.attention_norm 8 8 < embedding.sum\n"
                                                   "layer0.qkv.copy < layer0.attention_norm\n"
                                                   "layer0.qkv 8x12 12 < layer0.qkv.copy\n"
                                                   "layer0.attention < layer0.qkv\n"
                                                   "layer0.projection 4x8 < layer0.attention\n"
                                                   "layer0.projection.sum < layer0.projection\n"));
    EXPECT_THAT(picture(part), testing::EndsWith("head.scores.copy < head.norm\n"
                                                 "head.scores < head.scores.copy\n"
                                                 "loss.terms < head.scores\n"
                                                 "loss.gather < loss.terms\n"
                                                 "loss < loss.gather\n"));
    const int qkv = *find_layer(part.network, "layer0.qkv");
    EXPECT_THAT(part.origins[static_cast<std::size_t>(qkv)].cuts,
                testing::ElementsAre(Cut{0, 1, 0, 3}, Cut{1, 0, 0, 3}));
    const Layer& scores = part.network.layers[static_cast<std::size_t>(*find_layer(part.network, "head.scores"))];
    EXPECT_EQ(scores.weights_of, *find_layer(part.network, "embedding"));
    EXPECT_EQ(std::get<MatMul>(scores.op).n, 6);
}

// Korthikanti et al. 2022, figure 5: normalization and additions on each rank's rows.
TEST(SplitTensor, OnSequencesGivesEachRankItsRows) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2, true});
    check(part.network);
    EXPECT_THAT(picture(part), testing::HasSubstr("layer0.mlp_norm 8 8 < layer0.attention_add\n"
                                                  "layer0.fc1.spread < layer0.mlp_norm\n"
                                                  "layer0.fc1 8x16 16 < layer0.fc1.spread\n"));
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const Layer& layer = part.network.layers[i];
        if (!std::holds_alternative<LayerNorm>(layer.op) && !std::holds_alternative<Add>(layer.op)) continue;
        EXPECT_EQ(layer.output, (Shape{3, 8})) << layer.name;
        EXPECT_EQ(part.origins[i].summed, (parameters(layer.op) > 0 ? std::vector<int>{0} : std::vector<int>{}))
            << layer.name;
    }
}

/// Collectives of one layer of one micro-batch, by kind, each of so many elements.
std::map<CollectiveKind, int> collectives_of_layer(const char* plan, std::int64_t elements,
                                                   const Network& network = two_blocks(),
                                                   const std::string& block = "layer1.") {
    Machine machine;
    machine.name = "host";
    machine.nodes.push_back({"host", 1, {}, {}});
    for (int i = 0; i < 2; ++i) machine.nodes[0].vertices.push_back({"gpu", VertexKind::device, 0});
    const Schedule schedule = make_schedule(network, machine, parse_plan(plan), {.devices = 2, .batch_per_device = 6});
    std::map<CollectiveKind, int> count;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr || !step.name.starts_with(block) || action->micro_batch != 1) continue;
        EXPECT_EQ(action->elements, elements) << step.name;
        ++count[action->kind];
    }
    return count;
}

// Narayanan et al. 2021, section 3.2, and Korthikanti et al. 2022: two sums of b s h values forward and two backward;
// six where forward is done again; a reduce-scatter and an all-gather in place of each.
TEST(SplitTensor, CommunicatesAsOftenAsMegatron) {
    using enum CollectiveKind;
    const std::int64_t bsh = 3 * 6 * 8;
    using Count = std::map<CollectiveKind, int>;
    EXPECT_EQ(collectives_of_layer("tensor=2,data=1:microbatch=3", bsh), (Count{{all_reduce, 4}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:recompute=blocks,data=1:microbatch=3", bsh), (Count{{all_reduce, 6}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:recompute=attention,data=1:microbatch=3", bsh), (Count{{all_reduce, 4}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:sequence=on,data=1:microbatch=3", bsh),
              (Count{{reduce_scatter, 4}, {all_gather, 6}}))
        << "section 4.2.2: rows are gathered again for the gradients of both layers that are cut by columns";
}

// The same where queries, keys and values, and gate and up, are layers of their own that read the same rows.
TEST(SplitTensor, CommunicatesAsOftenForLayersThatReadTheSameRows) {
    using enum CollectiveKind;
    using Count = std::map<CollectiveKind, int>;
    const Network network =
        models::load_network(REHEARSE_TEST_DATA "/huggingface/my-llama", {.sizes = {{"tokens", 16}}});
    const std::int64_t bsh = 3 * 16 * 2048;
    const std::string block = "model.layers.7.";
    EXPECT_EQ(collectives_of_layer("tensor=2,data=1:microbatch=3", bsh, network, block), (Count{{all_reduce, 4}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:recompute=blocks,data=1:microbatch=3", bsh, network, block),
              (Count{{all_reduce, 6}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:sequence=on,data=1:microbatch=3", bsh, network, block),
              (Count{{reduce_scatter, 4}, {all_gather, 6}}));
}

// Section 4.2.2: what is gathered again comes while the gradient of the input is made, and this leaves while that of
// the weights is.
TEST(SplitTensor, GathersRowsAgainBesideTheGradientOfTheInput) {
    const Schedule schedule = schedule_of(two_blocks(), "tensor=2:sequence=on", 2);
    const std::vector<Step>& steps = schedule.classes[0].steps;
    const auto find = [&](std::string_view name) {
        const auto found = std::ranges::find(steps, name, &Step::name);
        EXPECT_NE(found, steps.end()) << name;
        return static_cast<int>(found - steps.begin());
    };
    const int gather = find("layer1.fc1.spread:allgather:backward"), data = find("layer1.fc1:backward_data");
    const int scatter = find("layer1.fc1.spread:gradient_reducescatter"), weights = find("layer1.fc1:backward_weights");
    EXPECT_LT(gather, data);
    EXPECT_LT(data, scatter);
    EXPECT_LT(scatter, weights);
    const auto waits = [&](int step, int before) {
        return std::ranges::count(steps[static_cast<std::size_t>(step)].after, before) > 0;
    };
    EXPECT_FALSE(waits(data, gather));
    EXPECT_TRUE(waits(weights, gather));
    EXPECT_TRUE(waits(scatter, data));
    EXPECT_FALSE(waits(weights, scatter));
}

Network with_words(std::int64_t words) {
    return models::transformer(
        {.name = "words", .layers = 1, .hidden = 8, .heads = 4, .vocabulary = words, .positions = 6, .keep = 1}, 6);
}

// Megatron-LM's make-vocab-size-divisible-by: 300 words on two ranks lie as they are, 301 as 512 with 256 each.
// Its memory is that of every gather: the next one would overwrite what is being sent.
TEST(SplitTensor, NeverSendsWhatWasGatheredToTheNextStage) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2, true});
    const auto layers = static_cast<int>(part.network.layers.size());
    for (int end = 2; end < layers; ++end) {
        const std::vector<int> ends{end, layers};
        for (const Stage& stage : cut_stages(part, ends, 2, "pipe", false)) {
            check(stage.part.network);
            for (const Layer& layer : stage.part.network.layers) {
                const auto* op = std::get_if<Communication>(&layer.op);
                if (op == nullptr || op->movement != Movement::send) continue;
                const Layer& sent = stage.part.network.layers[static_cast<std::size_t>(layer.inputs.front())];
                EXPECT_FALSE(gathers_again(sent)) << sent.name << ", cut before layer " << end;
            }
        }
    }
}

// A stage may end anywhere in a block: what ranks have pieces or parts of (heads, cut features, a product before its
// sum, a copy whose gradients are not summed yet) is handed on as it is, the rest in pieces that are gathered.
TEST(SplitTensor, ScattersBetweenStagesWhatAllRanksHave) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2, false});
    const auto layers = static_cast<int>(part.network.layers.size());
    std::int64_t scattered = 0, as_it_is = 0;
    for (int end = 2; end < layers; ++end) {
        const std::vector<int> ends{end, layers};
        for (const Stage& stage : cut_stages(part, ends, 2, "pipe", false, {"tensor", 2})) {
            check(stage.part.network);
            for (const Layer& layer : stage.part.network.layers) {
                const auto* op = std::get_if<Communication>(&layer.op);
                if (op == nullptr || op->movement != Movement::send) continue;
                const Layer& sent = stage.part.network.layers[static_cast<std::size_t>(layer.inputs.front())];
                const auto* slice = std::get_if<Communication>(&sent.op);
                const bool cut = slice != nullptr && slice->movement == Movement::slice;
                (cut ? scattered : as_it_is) += 1;
                if (!cut) continue;
                const Layer& of = stage.part.network.layers[static_cast<std::size_t>(sent.inputs.front())];
                const auto* made = std::get_if<Communication>(&of.op);
                const bool partial = made != nullptr && made->movement == Movement::copy;
                EXPECT_FALSE(partial) << of.name << ": each rank has a part of its gradient";
                EXPECT_EQ(elements(op->shape) * 2, elements(of.output));
            }
        }
    }
    EXPECT_GT(scattered, 5);
    EXPECT_GT(as_it_is, 5);
}

TEST(SplitTensor, FillsUpAVocabularyThatRanksCannotShareEvenly) {
    for (const bool sequence : {false, true}) {
        const Part even = split_tensor(with_words(300), {"tensor", 0, 2, sequence});
        const Part uneven = split_tensor(with_words(301), {"tensor", 0, 2, sequence});
        const auto layer = [](const Part& part, const char* name) {
            return part.network.layers[static_cast<std::size_t>(*find_layer(part.network, name))];
        };
        check(even.network);
        check(uneven.network);
        EXPECT_EQ(std::get<Embedding>(layer(even, "embedding").op).vocabulary, 150);
        EXPECT_EQ(std::get<SoftmaxTerms>(layer(even, "loss.terms").op), (SoftmaxTerms{150, 6, 2}));
        EXPECT_EQ(std::get<Embedding>(layer(uneven, "embedding").op).vocabulary, 256);
        EXPECT_EQ(std::get<MatMul>(layer(uneven, "head.scores").op).n, 256);
        EXPECT_EQ(std::get<SoftmaxTerms>(layer(uneven, "loss.terms").op), (SoftmaxTerms{256, 6, 2, 301}));
    }
}

// Rows that no word has may be chosen by who does not know of them: the table stays whole, and its rows of the sequence
// are not what shares its weights.
TEST(SplitTensor, LeavesATableWholeWhereSomebodyElseReadsItsScores) {
    Network network = with_words(301);
    std::get<SoftmaxLoss>(network.layers.back().op).class_weights.assign(301, 1.0);
    for (const bool sequence : {false, true}) {
        const Part part = split_tensor(network, {"tensor", 0, 2, sequence});
        check(part.network);
        const Layer& scores = part.network.layers[static_cast<std::size_t>(*find_layer(part.network, "head.scores"))];
        EXPECT_EQ(scores.weights_of, *find_layer(part.network, "embedding"));
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

// Of a block of Llama 3 on 8 ranks, each has 4 of 32 heads and 1 of the 8 that these share; queries, keys and values
// read the same copied rows, as gate and up do, so that backward sums twice a block, and forward as often.
TEST(SplitTensor, SharedKeysGoWithTheirHeadsAndReadersShareOneSum) {
    const Network network = models::load_network("llama3-8b@16");
    const Part part = split_tensor(network, {"tensor", 0, 8});
    check(part.network);
    const auto op_of = [&](std::string_view name) {
        return part.network.layers[static_cast<std::size_t>(find_layer(part.network, name).value())].op;
    };
    const std::string self = "model.layers.3.self_attn.";
    EXPECT_EQ(op_of(self + "k_proj"), Op(MatMul{16, 128, 4096, false}));
    Attention heads{4, 16, 16, 128, true};
    heads.key_heads = 1;
    EXPECT_EQ(op_of(self + "attention"), Op(heads));
    EXPECT_EQ(op_of("model.layers.3.mlp.gated"), Op(Elementwise{"mul", {16, 1792}, {{16, 1792}, {16, 1792}}}));
    std::map<Movement, int> in_block;
    for (const Layer& layer : part.network.layers) {
        const auto* moved = std::get_if<Communication>(&layer.op);
        if (moved != nullptr && layer.name.starts_with("model.layers.3.")) ++in_block[moved->movement];
    }
    EXPECT_EQ(in_block, (std::map<Movement, int>{{Movement::copy, 2}, {Movement::sum, 2}}));
    const Part rows = split_tensor(network, {.name = "tensor", .index = 0, .parts = 8, .sequence = true});
    check(rows.network);
    in_block.clear();
    for (const Layer& layer : rows.network.layers) {
        const auto* moved = std::get_if<Communication>(&layer.op);
        if (moved != nullptr && layer.name.starts_with("model.layers.3.")) ++in_block[moved->movement];
    }
    EXPECT_EQ(in_block, (std::map<Movement, int>{{Movement::all_gather, 2}, {Movement::reduce_scatter, 2}}));
}

// Latent attention: what is narrow is on all ranks, what heads own is on theirs.
TEST(SplitTensor, CutsTheHeadsOfLatentAttention) {
    const Network network = models::load_network("deepseek-v2@16");
    const Part part = split_tensor(network, {"tensor", 0, 8});
    check(part.network);
    const int at = find_layer(part.network, "model.layers.1.self_attn.attention").value();
    Attention heads{16, 16, 16, 192, true};
    heads.value_size = 128;
    EXPECT_EQ(part.network.layers[static_cast<std::size_t>(at)].op, Op(heads));
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
