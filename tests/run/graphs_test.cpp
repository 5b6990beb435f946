// SPDX-License-Identifier: Apache-2.0
// Graphs that are made up: what the networks need of them, counted here.
#include "run/data/graphs.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::run {
namespace {

using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

struct Drawn {
    std::map<std::string, std::vector<float>> numbers;
    std::vector<std::int32_t> ids, labels;
};

Drawn drawn(const std::string& model, std::int64_t index) {
    const Network network = models::load_network(model);
    std::int64_t all = 0;
    for (const FedInput& each : fed_inputs(network, false)) all += each.size();
    std::vector<float> input(static_cast<std::size_t>(all));
    Drawn d;
    if (model == "schnet")
        d.ids.resize(29);
    else
        d.labels.resize(static_cast<std::size_t>(network.layers.front().output.front()));
    Graphs(network, 7).fill(index, input, d.ids, d.labels);
    auto first = input.begin();
    for (const FedInput& each : fed_inputs(network, false)) {
        d.numbers[each.data_set].assign(first, first + each.size());
        first += each.size();
    }
    return d;
}

TEST(Graphs, AreSymmetricCommunitiesWithTheirDegrees) {
    const Drawn d = drawn("gcn-small", 3);
    const auto &from = d.numbers.at("from"), &to = d.numbers.at("to"), &weights = d.numbers.at("edge_weights");
    std::map<std::pair<float, float>, int> links;
    std::map<float, double> degree;
    for (std::size_t i = 0; i < from.size(); ++i) {
        ASSERT_TRUE(from[i] >= 0 && from[i] < 256 && to[i] >= 0 && to[i] < 256);
        ++links[{from[i], to[i]}];
        ++degree[to[i]];
    }
    for (const auto& [link, count] : links) EXPECT_EQ((links[{link.second, link.first}]), count);
    for (float node = 0; node < 256; ++node) EXPECT_GE((links[{node, node}]), 1) << "each hears itself";
    for (std::size_t i = 0; i < from.size(); ++i)
        EXPECT_NEAR(weights[i], 1 / std::sqrt(degree[from[i]] * degree[to[i]]), 1e-6);
    std::map<std::int32_t, int> told;
    for (const std::int32_t label : d.labels) ++told[label];
    for (std::int32_t label = 0; label < 4; ++label) EXPECT_EQ(told[label], 20);
    EXPECT_EQ(told[-1], 256 - 80) << "asks for nothing, whatever label of a file does";
}

TEST(Graphs, MoleculesHaveEdgesBetweenAllTheirAtoms) {
    for (std::int64_t index = 0; index < 20; ++index) {
        const Drawn d = drawn("schnet", index);
        const auto atoms = std::ranges::count(d.numbers.at("molecule"), 0.0F);
        ASSERT_GE(atoms, 9);
        EXPECT_EQ(std::ranges::count_if(d.numbers.at("from"), [](float id) { return id >= 0; }), atoms * (atoms - 1));
        EXPECT_EQ(std::ranges::count_if(d.ids, [](std::int32_t kind) { return kind > 0; }), atoms);
        EXPECT_LT(std::abs(d.numbers.at("energy").front()), 30);
        const std::vector<float>& p = d.numbers.at("positions");
        for (std::size_t i = 0; i < d.numbers.at("from").size() && d.numbers.at("from")[i] >= 0; ++i) {
            const auto a = static_cast<std::size_t>(d.numbers.at("from")[i]),
                       b = static_cast<std::size_t>(d.numbers.at("to")[i]);
            const double apart =
                std::hypot(p[3 * a] - p[3 * b], p[3 * a + 1] - p[3 * b + 1], p[3 * a + 2] - p[3 * b + 2]);
            EXPECT_GT(apart, 0.3);
        }
    }
}

TEST(Graphs, AreTheSameWhoeverMakesThem) {
    EXPECT_EQ(drawn("gcn-small", 5).numbers, drawn("gcn-small", 5).numbers);
    EXPECT_NE(drawn("gcn-small", 5).numbers, drawn("gcn-small", 6).numbers);
    EXPECT_EQ(drawn("schnet", 5).ids, drawn("schnet", 5).ids);
}

TEST(Graphs, OtherNetworksReadNone) {
    EXPECT_THAT([] { Graphs(models::load_network("mlp"), 1); },
                ThrowsMessage<InputError>(HasSubstr("network 'mlp' reads none: choose gcn-cora, gcn-small or schnet")));
}

}  // namespace
}  // namespace rehearse::run
