// SPDX-License-Identifier: Apache-2.0
#include "models/difference.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/builder.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

std::vector<std::string> picture(const Network& a, const Network& b) {
    const auto name = [](const Network& network, int layer) {
        return layer < 0 ? std::string{"-"} : network.layers[static_cast<std::size_t>(layer)].name;
    };
    std::vector<std::string> lines;
    for (const Match& match : matched(a, b)) {
        lines.push_back(name(a, match.a) + (alike(a, b, match) ? " = " : " ~ ") + name(b, match.b));
    }
    return lines;
}

Network narrow(const char* prefix, std::int64_t width, bool extra) {
    NetworkBuilder b("net", {8});
    const std::string name = prefix;
    int x = b.relu(name + "relu", b.dense(name + "first", NetworkBuilder::input, width));
    if (extra) x = b.dropout(name + "drop", x, 0.5);
    b.loss(b.dense(name + "last", x, 2));
    return b.build();
}

TEST(Matched, FindsTheSameOperatorsUnderOtherNames) {
    EXPECT_THAT(picture(narrow("a.", 4, false), narrow("b.", 4, true)),
                testing::ElementsAre("input = input", "a.first = b.first", "a.relu = b.relu", "- ~ b.drop",
                                     "a.last = b.last", "loss = loss"));
}

TEST(Matched, PairsWhatChangedByItsKind) {
    EXPECT_THAT(picture(narrow("a.", 4, true), narrow("b.", 6, false)),
                testing::ElementsAre("input = input", "a.first ~ b.first", "a.relu ~ b.relu", "a.drop ~ -",
                                     "a.last ~ b.last", "loss = loss"));
}

TEST(Matched, HasEveryLayerOnceThatComputes) {
    const Network a = load_network("resnet50"), b = load_network("resnext50-32x4d");
    std::vector<int> left, right;
    for (const Match& match : matched(a, b)) {
        if (match.a >= 0) left.push_back(match.a);
        if (match.b >= 0) right.push_back(match.b);
    }
    EXPECT_TRUE(std::ranges::is_sorted(left));
    EXPECT_TRUE(std::ranges::is_sorted(right));
    const auto computing = [](const Network& network) {
        return static_cast<std::size_t>(std::ranges::count_if(
            network.layers, [](const Layer& layer) { return !std::holds_alternative<Flatten>(layer.op); }));
    };
    EXPECT_EQ(left.size(), computing(a));
    EXPECT_EQ(right.size(), computing(b));
}

}  // namespace
}  // namespace rehearse::models
