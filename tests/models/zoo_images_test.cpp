// SPDX-License-Identifier: Apache-2.0
// Networks of the zoo since 2017: parameters and multiply-adds as published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

struct Published {
    const char* name;
    std::int64_t parameters;
    double giga_macs;  // 0: not published
};
void PrintTo(const Published& it, std::ostream* out) { *out << it.name; }

class ZooSince2017 : public testing::TestWithParam<Published> {};

TEST_P(ZooSince2017, HasThePublishedParametersAndMultiplyAdds) {
    const Network network = load_network(GetParam().name);
    EXPECT_EQ(network.name, GetParam().name);
    EXPECT_EQ(parameters(network), GetParam().parameters);
    double work = 0;
    for (const Layer& layer : network.layers) work += multiply_adds(layer.op);
    // Half a unit of the last digit published, and what torchvision counts beside products: biases, at most 0.3 %.
    const double published = GetParam().giga_macs;
    if (published > 0) {
        EXPECT_NEAR(work / 1e9, published, 0.0006 + 3e-3 * published);
    }
    EXPECT_TRUE(is_loss(network.layers.back().op));
}

std::string plain(const testing::TestParamInfo<Published>& test) {
    std::string name = test.param.name;
    std::ranges::replace_if(
        name, [](char c) { return c == '-' || c == '.'; }, '_');
    return name;
}

// num_params and GFLOPS of the weights' pages of torchvision.models (0.15); resnext101-32x4d counted of its
// ResNet(Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4).
INSTANTIATE_TEST_SUITE_P(
    Torchvision, ZooSince2017,
    testing::Values(Published{"efficientnet-b0", 5'288'548, 0.386}, Published{"efficientnet-b1", 7'794'184, 0.687},
                    Published{"efficientnet-b2", 9'109'994, 1.088}, Published{"efficientnet-b3", 12'233'232, 1.827},
                    Published{"efficientnet-b4", 19'341'616, 4.394}, Published{"efficientnet-b5", 30'389'784, 10.266},
                    Published{"efficientnet-b6", 43'040'704, 19.068}, Published{"efficientnet-b7", 66'347'960, 37.746},
                    Published{"mobilenet-v2", 3'504'872, 0.301}, Published{"mobilenet-v3-large", 5'483'032, 0.217},
                    Published{"mobilenet-v3-small", 2'542'856, 0.057}, Published{"resnext50-32x4d", 25'028'904, 4.23},
                    Published{"resnext101-32x4d", 44'177'704, 7.97}, Published{"resnext101-32x8d", 88'791'336, 16.414},
                    Published{"resnext101-64x4d", 83'455'272, 15.46}, Published{"regnet-x-400mf", 5'495'976, 0.414},
                    Published{"regnet-x-800mf", 7'259'656, 0.8}, Published{"regnet-x-1.6gf", 9'190'136, 1.603},
                    Published{"regnet-x-3.2gf", 15'296'552, 3.177}, Published{"regnet-x-8gf", 39'572'648, 7.995},
                    Published{"regnet-x-16gf", 54'278'536, 15.941}, Published{"regnet-x-32gf", 107'811'560, 31.736},
                    Published{"regnet-y-400mf", 4'344'144, 0.402}, Published{"regnet-y-800mf", 6'432'512, 0.834},
                    Published{"regnet-y-1.6gf", 11'202'430, 1.612}, Published{"regnet-y-3.2gf", 19'436'338, 3.176},
                    Published{"regnet-y-8gf", 39'381'472, 8.473}, Published{"regnet-y-16gf", 83'590'140, 15.912},
                    Published{"regnet-y-32gf", 145'046'770, 32.28}, Published{"convnext-tiny", 28'589'128, 4.456},
                    Published{"convnext-small", 50'223'688, 8.684}, Published{"convnext-base", 88'591'464, 15.355},
                    Published{"convnext-large", 197'767'336, 34.361}, Published{"vit-b-16", 86'567'656, 17.564},
                    Published{"vit-l-16", 304'326'632, 61.555}, Published{"vit-h-14", 632'045'800, 167.295},
                    Published{"swin-t", 28'288'354, 4.491}, Published{"swin-s", 49'606'258, 8.741},
                    Published{"swin-b", 87'768'224, 15.431}),
    plain);

// Totals of the models' safetensors files on huggingface.co. DeepSeek-V3 (2024), section 4.2: 671 B, without the layer
// that predicts the token after the next.
INSTANTIATE_TEST_SUITE_P(
    HuggingFace, ZooSince2017,
    testing::Values(Published{"llama3-8b", 8'030'261'248, 0}, Published{"llama3-70b", 70'553'706'496, 0},
                    Published{"llama3-405b", 405'853'388'800, 0}, Published{"mixtral-8x7b", 46'702'792'704, 0},
                    Published{"deepseek-v2", 235'741'434'880, 0}, Published{"deepseek-v3", 671'026'419'200, 0},
                    Published{"qwen3-0.6b", 596'049'920, 0}, Published{"qwen3-8b", 8'190'735'360, 0},
                    Published{"qwen3-32b", 32'762'123'264, 0}, Published{"qwen3-30b-a3b", 30'532'122'624, 0},
                    Published{"qwen3-235b-a22b", 235'093'634'560, 0},
                    Published{"stable-diffusion-unet", 859'520'964, 0}),
    plain);

TEST(ZooSince2017Tokens, AreSaidBehindTheName) {
    EXPECT_EQ(load_network("llama3-8b@512").layers.front().output, Shape{512});
    EXPECT_EQ(parameters(load_network("llama3-8b@512")), parameters(load_network("llama3-8b")));
    EXPECT_EQ(load_network("llama3-8b", {.sizes = {{"tokens", 512}}}).layers.front().output, Shape{512});
    EXPECT_EQ(load_network("llama3-8b@100000").layers.front().output, Shape{100000});
    EXPECT_THAT(
        [] { load_network("llama3-8b@1"); },
        testing::ThrowsMessage<InputError>(testing::StartsWith("llama3-8b@1: llama3-8b takes 2 or more tokens")));
}

// github.com/quark0/darts prints "param size = 1.930618MB" of its network of mixed operators, whose operators' batch
// normalizations have no weights, and does not count the 2 x 14 x 8 numbers of the shares.
TEST(Darts, HasTheParametersThatItsAuthorsCount) {
    const Network network = load_network("darts");
    std::int64_t counted = 0;
    for (const Layer& layer : network.layers) {
        const bool norm = std::holds_alternative<BatchNorm>(layer.op) && layer.name != "stem.bn";
        if (!norm && !std::holds_alternative<Parameter>(layer.op)) counted += parameters(layer.op);
    }
    EXPECT_EQ(counted, 1930618);
}

}  // namespace
}  // namespace rehearse::models
