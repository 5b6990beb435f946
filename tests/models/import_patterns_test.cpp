// SPDX-License-Identifier: Apache-2.0
// What several operators make together, in files that PyTorch 1.13 exported (tests/data/onnx): eight rows of 32 numbers
// in four heads of eight, in Hugging Face's spelling.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/models.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

std::string data(const std::string& name) { return REHEARSE_TEST_DATA "/onnx/" + name; }

// All numbers of heads of eight are turned, halves or neighbours, by tables of eight rows.
std::vector<std::string> expected(const std::string& keys, const std::string& heads, const std::string& turned) {
    const std::string tables = ":fixed8x8+8x8:by", how = ",8,8,0," + turned + ",0";
    const std::string rows = "8x32:rotary:in8x32" + tables + "32" + how;
    const std::string fewer = "8x" + keys + ":rotary:in8x" + keys + tables + keys + how;
    return {
        "input:8x32",          "matmul:m8n32k32",      "matmul:m8n" + keys + "k32",         "matmul:m8n" + keys + "k32",
        "elementwise:" + rows, "elementwise:" + fewer, "attention:h4q8k8d8:causal" + heads, "matmul:m8n32k32"};
}

TEST(Patterns, GroupedQueriesWithRotaryEmbeddings) {
    const Network network = import_onnx(data("attention_grouped.onnx"));
    EXPECT_THAT(operators(network), testing::ElementsAreArray(expected("16", ":shared2", "0")));
    EXPECT_EQ(parameters(network), 2 * 32 * 32 + 2 * 32 * 16);
}

TEST(Patterns, OneHeadOfKeysForAll) {
    const Network network = import_onnx(data("attention_multi_query.onnx"));
    EXPECT_THAT(operators(network), testing::ElementsAreArray(expected("8", ":shared1", "0")));
}

// PyTorch 2's scaled_dot_product_attention(is_causal=True): its mask is computed of sizes, for which the file keeps a
// transposition that nothing else reads; keys are repeated by a Tile.
TEST(Patterns, AttentionOfPyTorch2) {
    for (const bool values : {false, true}) {
        const Network network = import_onnx(data("attention_of_pytorch2.onnx"), {.values = values});
        EXPECT_THAT(operators(network),
                    testing::ElementsAre("input:8x32", "matmul:m8n32k32", "matmul:m8n16k32", "matmul:m8n16k32",
                                         "attention:h4q8k8d8:causal:shared2", "matmul:m8n32k32"));
    }
}

TEST(Patterns, RotaryEmbeddingsOfNeighbours) {
    const Network network = import_onnx(data("attention_neighbours.onnx"));
    EXPECT_THAT(operators(network), testing::ElementsAreArray(expected("32", "", "1")));
}

// Who runs it gets the tables: of the first position no number is turned, of the next the first by 1.
TEST(Patterns, TheTablesOfRotaryEmbeddingsAreGiven) {
    for (const std::string file : {"attention_grouped.onnx", "attention_neighbours.onnx"}) {
        const Network network = import_onnx(data(file), {.values = true});
        const auto turned = std::ranges::find_if(
            network.layers, [](const Layer& layer) { return to_string(layer.op).find("rotary") != std::string::npos; });
        ASSERT_NE(turned, network.layers.end());
        ASSERT_NE(turned->given, nullptr);
        ASSERT_EQ(turned->given->fixed.size(), 2U);
        EXPECT_EQ(turned->given->fixed[0].size(), 64U);
        EXPECT_EQ(turned->given->fixed[0][0], 1);
        EXPECT_NEAR(turned->given->fixed[0][8], 0.5403, 1e-4);  // cos 1
        EXPECT_NEAR(turned->given->fixed[1][8], 0.8415, 1e-4);
    }
}

// 8 channels to 2 and back: the block's operators, each with its own counts.
TEST(Patterns, SqueezeAndExcitation) {
    const Network network = import_onnx(data("squeeze_excitation.onnx"));
    EXPECT_THAT(operators(network),
                testing::ElementsAre("input:8x4x4", "pool:c8h4w4r4s4:pad0:stride1:average",
                                     "conv2d:c8h1w1k2r1s1:pad0:stride1:bias", "elementwise:2x1x1:silu:in2x1x1",
                                     "conv2d:c2h1w1k8r1s1:pad0:stride1:bias", "activation:8x1x1:sigmoid",
                                     "elementwise:8x4x4:mul:in8x4x4+8x1x1"));
}

// Every expert computes every token, as files without data-dependent shapes have it: 8 tokens, 4 experts, 16 to 32.
TEST(Patterns, AGateOfAMixtureOfExperts) {
    const Network network = import_onnx(data("mixture_gate.onnx"));
    EXPECT_EQ(parameters(network), 16 * 4 + 2 * 4 * 16 * 32);
    double products = 0;
    for (const Layer& layer : network.layers) products += multiply_adds(layer.op);
    EXPECT_EQ(products, 8 * 16 * 4 + 2 * 8 * 4 * 16 * 32);
}

}  // namespace
}  // namespace rehearse::models
