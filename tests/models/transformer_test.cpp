// SPDX-License-Identifier: Apache-2.0
// Parameters as published or as the papers' formulas give them; operations of an iteration by Narayanan et al. 2021.
#include "models/zoo/transformer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Hugging Face's model pages count exactly: gpt2-xl 1,557,611,200; bert-base-uncased 109,482,240 and bert-large-uncased
// 335,141,888 with a pooler (h^2 + h) that we leave out, and without the head for masked words (h^2 + 3 h) that we
// have.
TEST(Transformers, HaveThePublishedParameters) {
    const auto with_head = [](std::int64_t published, std::int64_t h) {
        return published - (h * h + h) + h * h + 3 * h;
    };
    EXPECT_EQ(parameters(load_network("gpt2-xl")), 1'557'611'200);
    EXPECT_EQ(parameters(load_network("bert-base")), with_head(109'482'240, 768));
    EXPECT_EQ(parameters(load_network("bert-large")), with_head(335'141'888, 1024));
    // Brown et al. 2020, table D.1: 174,600 M.
    EXPECT_NEAR(static_cast<double>(parameters(load_network("gpt3-175b"))), 174'600e6, 50e6);
}

// A head of two scores has 2 h + 2 parameters in place of h^2 + 3 h, and the words' products are gone; of the masked
// ones 20 of 128 and 80 of 512 are left, max_predictions_per_seq of BERT's programs.
TEST(Transformers, AreAskedForMaskedWordsOrForAnswers) {
    const Network words = load_network("bert-large@128"), masked = load_network("bert-large-masked@128");
    const Network answers = load_network("bert-large-squad@128");
    EXPECT_EQ(parameters(masked), parameters(words));
    EXPECT_EQ(parameters(answers), parameters(words) - (1024 * 1024 + 3 * 1024) + 2 * 1024 + 2);
    const auto rows = [](const Network& network) { return std::get<SoftmaxLoss>(network.layers.back().op).rows; };
    EXPECT_EQ(rows(words), 128);
    EXPECT_EQ(rows(masked), 20);
    EXPECT_EQ(rows(load_network("bert-base-masked")), 80);
    EXPECT_EQ(rows(load_network("bert-base-masked@2")), 2);
    EXPECT_EQ(rows(answers), 128);
    // 1,024 x (1,024 + 30,522) multiply-adds a token of the head, of which 108 of 128 need none; of answers all.
    const double token = 2.0 * 1024 * (1024 + 30522);
    const auto of = [](const Network& network) { return flops(network, Pass::forward).value; };
    EXPECT_NEAR(of(words) - of(masked), 108 * token, 4e-3 * 108 * token) << "biases, GELU, norm and loss are 0.2 %";
    EXPECT_NEAR(of(words) - of(answers), 128 * token, 4e-3 * 128 * token);
}

struct Megatron {
    const char* name;
    double billions;  // as in table 1: to a tenth
    std::int64_t layers, hidden, heads;
};

void PrintTo(const Megatron& it, std::ostream* out) { *out << it.name; }

class MegatronTable : public testing::TestWithParam<Megatron> {};

constexpr double sequence = 2048, words = 51200;

// Equation 2, P = 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), leaves out the last normalization, 2 h.
TEST_P(MegatronTable, HasTheParametersOfEquationTwo) {
    const Network network = load_network(GetParam().name);
    const auto l = static_cast<double>(GetParam().layers);
    const auto h = static_cast<double>(GetParam().hidden);
    const double expected = 12 * l * h * h + 13 * l * h + (words + sequence) * h + 2 * h;
    EXPECT_EQ(static_cast<double>(parameters(network)), expected);
    EXPECT_NEAR(expected / 1e9, GetParam().billions, 0.05);
    EXPECT_EQ(network.name, GetParam().name);
}

// What the paper counts: products, without bias; attention without its mask.
Op as_counted(Op op) {
    if (auto* dense = std::get_if<MatMul>(&op)) dense->bias = false;
    if (auto* attention = std::get_if<Attention>(&op)) attention->causal = false;
    return op;
}

// Equation 3, F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)), of an iteration in which the forward pass of the blocks,
// but not of the scores, is run twice. Ours has the softmax, 4 FLOP a pair beside 4 * 64 or more: below 2 % of a part
// that is s / (6 h) of the whole.
TEST_P(MegatronTable, HasTheOperationsOfEquationThree) {
    const Network network = load_network(GetParam().name);
    double sum = 0;
    for (const Layer& layer : network.layers) {
        const bool product = std::holds_alternative<MatMul>(layer.op);
        if (!product && !std::holds_alternative<Attention>(layer.op)) continue;
        const Op op = as_counted(layer.op);
        sum += flops(op, Pass::forward).value * (layer.name == "head.scores" ? 1 : 2);
        sum += flops(op, Pass::backward_data).value + flops(op, Pass::backward_weights).value;
        EXPECT_EQ(product ? GetParam().heads : std::get<Attention>(op).heads, GetParam().heads);
    }
    const auto l = static_cast<double>(GetParam().layers);
    const auto h = static_cast<double>(GetParam().hidden);
    const double expected = 96 * sequence * l * h * h * (1 + sequence / (6 * h) + words / (16 * l * h));
    EXPECT_GE(sum, expected);
    EXPECT_LE(sum, expected * (1 + 0.02 * sequence / (6 * h)));
}

INSTANTIATE_TEST_SUITE_P(
    TableOne, MegatronTable,
    testing::Values(Megatron{"megatron-1.7b", 1.7, 24, 2304, 24}, Megatron{"megatron-3.6b", 3.6, 30, 3072, 32},
                    Megatron{"megatron-7.5b", 7.5, 36, 4096, 32}, Megatron{"megatron-18.4b", 18.4, 40, 6144, 48},
                    Megatron{"megatron-39.1b", 39.1, 48, 8192, 64}, Megatron{"megatron-76.1b", 76.1, 60, 10240, 80},
                    Megatron{"megatron-145.6b", 145.6, 80, 12288, 96},
                    Megatron{"megatron-310.1b", 310.1, 96, 16384, 128},
                    Megatron{"megatron-529.6b", 529.6, 105, 20480, 128},
                    Megatron{"megatron-1t", 1008.0, 128, 25600, 160}),
    [](const auto& test) {
        std::string name = test.param.name;
        std::ranges::replace_if(
            name, [](char c) { return c == '-' || c == '.'; }, '_');
        return name;
    });

// 103.2e9 and 1002.7e9 as published (Yang et al. 2021, table 1). Blocks: four products of attention and two of each
// expert; slots are 1.25 times the tokens where experts can have so many, in whole ones.
TEST(Mixtures, HaveThePublishedParametersAndSlots) {
    const auto experts_of = [](const char* name) {
        double slots = 0, operations = 0;
        const Network network = load_network(name);
        for (const Layer& layer : network.layers) {
            if (!std::holds_alternative<GroupedMatMul>(layer.op)) continue;
            slots = static_cast<double>(layer.output.front());
            operations += flops(layer.op, Pass::forward).value;
        }
        return std::pair{slots, operations};
    };
    EXPECT_NEAR(static_cast<double>(parameters(load_network("m6-100b"))), 103.2e9, 0.1e9);
    EXPECT_NEAR(static_cast<double>(parameters(load_network("m6-1t"))), 1002.7e9, 0.1e9);
    EXPECT_EQ(experts_of("m6-100b"), (std::pair{640.0, 24 * 2 * 640 * 2.0 * 1024 * 4096}));
    EXPECT_EQ(experts_of("m6-1t"), (std::pair{720.0, 24 * 2 * 720 * 2.0 * 1024 * 21248}));
    EXPECT_EQ(experts_of("gpt-h8-a2-l3-v10-e4-t2@6"), (std::pair{4.0 * 4, 3 * 2 * 16 * 2.0 * 8 * 32}));
    EXPECT_THROW(load_network("gpt-h8-a2-l3-e4-t3@6"), InputError);
    EXPECT_THROW(load_network("gpt-h8-a2-l3-e1-t2@6"), InputError);
    for (const auto& [name, why] : {std::pair{"gpt-h8-a2-l3-t2", "there are none without -e"},
                                    std::pair{"gpt-h8-h16-a2-l3", "-h stands there twice"},
                                    std::pair{"gpt-h8-a2-l3@1", "a sample of 1 tokens, at least 2"}})
        EXPECT_THAT([name = name] { load_network(name); }, ThrowsMessage<InputError>(HasSubstr(why))) << name;
}

TEST(Transformers, TakeASequenceByTheirName) {
    const Network network = load_network("bert-large@128");
    EXPECT_EQ(network.name, "bert-large@128");
    EXPECT_EQ(network.layers.front().output, (Shape{128}));
    EXPECT_EQ(parameters(network), parameters(load_network("bert-large"))) << "positions are a table of 512 rows";
    EXPECT_THAT([] { load_network("bert-large@513"); },
                ThrowsMessage<InputError>(HasSubstr("2 to 512 have positions")));
    EXPECT_THAT([] { load_network("bert-large@x"); },
                ThrowsMessage<InputError>(HasSubstr("sequence of 'bert-large@x'")));
    EXPECT_THAT([] { load_network("bert-huge"); }, ThrowsMessage<InputError>(HasSubstr("did you mean")));
}

TEST(Transformers, NormalizeAfterAHalfAsEncodersAndBeforeItAsDecoders) {
    const auto order = [](TransformerKind kind) {
        std::string text;
        const Network network = transformer({"tiny", kind, 1, 8, 2, 10, 4, 0, 1}, 4);
        for (const Layer& layer : network.layers) text += " " + layer.name;
        return text;
    };
    EXPECT_EQ(
        order(TransformerKind::encoder),
        " input embedding embedding.norm layer0.qkv layer0.attention layer0.projection layer0.attention_add "
        "layer0.attention_norm layer0.fc1 layer0.gelu layer0.fc2 layer0.mlp_add layer0.mlp_norm head.dense head.gelu "
        "head.norm head.scores loss");
    EXPECT_EQ(
        order(TransformerKind::decoder),
        " input embedding layer0.attention_norm layer0.qkv layer0.attention layer0.projection layer0.attention_add "
        "layer0.mlp_norm layer0.fc1 layer0.gelu layer0.fc2 layer0.mlp_add head.norm head.scores loss");
}

TEST(Dlrm, HasTheTablesOfThePaper) {
    const Network network = load_network("dlrm-small");
    const std::int64_t tables = 8 * 1'000'000 * 64;
    const std::int64_t bottom = 512 * 512 + 512 + 512 * 64 + 64;
    const std::int64_t top = (64 + 9 * 8 / 2) * 1024 + 1024 + 2 * (1024 * 1024 + 1024) + 1024 * 2 + 2;
    EXPECT_EQ(parameters(network), tables + bottom + top);
}

// calibrate/published/dlrm.csv: MiB of the MLPs' gradients, and of the tables' sums for a global batch.
TEST(Dlrm, HasTheVolumesThatArePublished) {
    struct Volumes {
        const char* network;
        double batch, all_reduce, all_to_all;
    };
    for (const Volumes& published : {Volumes{"dlrm-small", 8192, 9.5, 15.8}, Volumes{"dlrm-large", 16384, 1047, 1024},
                                     Volumes{"dlrm-mlperf", 16384, 9.0, 208}}) {
        SCOPED_TRACE(published.network);
        const Network network = load_network(published.network);
        const Layer& tables = network.layers[static_cast<std::size_t>(*find_layer(network, "tables"))];
        constexpr double mib = 1024 * 1024;
        const auto dense = static_cast<double>(parameters(network) - parameters(tables.op));
        EXPECT_NEAR(4 * dense / mib, published.all_reduce, 0.01 * published.all_reduce);
        EXPECT_NEAR(4 * published.batch * static_cast<double>(elements(tables.output)) / mib, published.all_to_all,
                    0.015 * published.all_to_all);
    }
}

}  // namespace
}  // namespace rehearse::models
