// SPDX-License-Identifier: Apache-2.0
// Parameters and operations of recurrent networks and of networks of graphs as their papers and programs give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

// 20 and 66 million (Merity et al. 2017, table 1, of Zaremba et al. 2014). By hand: words in and out with a bias, two
// LSTMs with two biases a gate.
TEST(LanguageModels, HaveThePublishedParameters) {
    const auto by_hand = [](std::int64_t n) { return 2 * 10'000 * n + 10'000 + 2 * 4 * n * (2 * n + 2); };
    EXPECT_EQ(parameters(load_network("lstm-ptb-medium")), by_hand(650));
    EXPECT_EQ(parameters(load_network("lstm-ptb-large")), by_hand(1500));
    EXPECT_NEAR(static_cast<double>(by_hand(650)), 20e6, 0.5e6);
    EXPECT_NEAR(static_cast<double>(by_hand(1500)), 66e6, 0.5e6);
}

// NVIDIA's program (PyTorch/Translation/GNMT) prints 159,593,523 for its 31,794 words; MLPerf's has 32,320, each a row
// of the embedding, one of the scores and a bias.
TEST(Gnmt, HasTheParametersThatItsProgramPrints) {
    EXPECT_EQ(parameters(load_network("gnmt")), 159'593'523 + (32'320 - 31'794) * (2 * 1024 + 1));
    EXPECT_EQ(parameters(load_network("gnmt@20")), parameters(load_network("gnmt")));
    // A word's products: 4 x 1024 x 3072 or 2048 in each LSTM, the first one twice, 2 x 1024^2 of attention, scores.
    const double lstms = 4.0 * 1024 * (2 * 2048 + 3072 + 2 * 2048 + 2048 + 3 * 3072);
    const double word = lstms + 2.0 * 1024 * 1024 + 1024.0 * 32'320;
    const auto one =
        [](std::int64_t words) {  // beside the pairs of words: a score and a share of the answer, 1024 each
            return flops(load_network("gnmt@" + std::to_string(words)), Pass::forward).value / 2 /
                   static_cast<double>(words);
        };
    // Gates, biases, dropout and functions of each pair are not in these products: a hundredth or two.
    EXPECT_NEAR(one(20), word + 20 * 2 * 1024, 0.02 * word);
}

// 499 kB of 8-bit weights and 48.4 million operations (Zhang et al. 2017, table 5, the largest GRU).
TEST(Keywords, HaveThePublishedWeightsAndOperations) {
    const Network network = load_network("gru-keywords");
    EXPECT_NEAR(static_cast<double>(parameters(network)), 499e3, 1e3);
    EXPECT_NEAR(flops(network, Pass::forward).value, 48.4e6, 0.02 * 48.4e6);
}

// Kipf and Welling's on Cora, (1433 + 1) x 16 + (16 + 1) x 7; PyTorch Geometric's SchNet with its defaults.
TEST(Graphs, HaveThePublishedParameters) {
    EXPECT_EQ(parameters(load_network("gcn-cora")), 23'063);
    EXPECT_EQ(parameters(load_network("schnet")), 455'809);
}

TEST(Recurrent, NamesTakeSteps) {
    EXPECT_EQ(load_network("lstm-ptb-large@70").layers.front().output, (Shape{70}));
    EXPECT_EQ(load_network("gru-keywords@25").layers.front().output, (Shape{25, 10}));
    const auto refusal = [](const char* name, const char* why) {
        EXPECT_THAT([&] { (void)load_network(name); }, ThrowsMessage<InputError>(HasSubstr(why)));
    };
    refusal("gnmt@1", "network 'gnmt@1': 1 steps; 2 to 100000 can be");
    refusal("gnmt@many", "steps of 'gnmt@many': 'many' is not a whole number");
}

}  // namespace
}  // namespace rehearse::models
