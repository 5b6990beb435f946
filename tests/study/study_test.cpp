// SPDX-License-Identifier: Apache-2.0
// Strategies on losses that are written down here: a bowl, whose lowest point is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "study/rounds.hpp"
#include "study/space.hpp"

namespace rehearse::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

double bowl(const Point& point) {
    double sum = 0;
    for (const double place : point) sum += (place - 0.3) * (place - 0.3);
    return sum;
}

struct Found {
    std::vector<Trial> trials;
    std::vector<std::vector<Turn>> rounds;
    double best() const { return std::ranges::min_element(trials, {}, &Trial::loss)->loss; }
};

Found searched(std::string_view name, const Settings& settings) {
    Found found;
    const auto train = [&](const std::vector<Trial>& trials, const std::vector<Turn>& turns, const Division&, int) {
        found.rounds.push_back(turns);
        Results results;
        for (const Turn& turn : turns)
            results.losses.push_back(bowl(trials[static_cast<std::size_t>(turn.trial)].point));
        return results;
    };
    found.trials = search(
                       name, settings, 1, [](const Point&) { return 1.0; }, train)
                       .trials;
    return found;
}

TEST(Space, ValuesLieAlongTheirSide) {
    const Parameter width = parse_parameter("width=16|32|64"), depth = parse_parameter("depth=1..4"),
                    rate = parse_parameter("learning-rate=1e-4..1e-2:log"), share = parse_parameter("momentum=0..0.5");
    EXPECT_EQ(value_at(width, 0), "16");
    EXPECT_EQ(value_at(width, 0.99), "64");
    for (const auto& [place, value] : {std::pair{0.0, "1"}, {0.3, "2"}, {0.74, "3"}, {0.999, "4"}, {1.0, "4"}})
        EXPECT_EQ(value_at(depth, place), value) << place;
    EXPECT_EQ(value_at(rate, 0.5), "0.001");
    EXPECT_EQ(value_at(share, 0.5), "0.25");
    const std::vector<Parameter> space{width, depth};
    EXPECT_EQ(with_values("gpt-h{width}-a2-l{depth}", space, {0.5, 0.5}), "gpt-h32-a2-l3");
    EXPECT_TRUE(names("gpt-h{width}", width));
    EXPECT_FALSE(names("gpt-h{width}", depth));
}

TEST(Space, MistakesAreNamed) {
    const auto refusal = [](const std::string& text, const char* why) {
        EXPECT_THAT([&] { (void)parse_parameter(text); }, ThrowsMessage<InputError>(HasSubstr(why))) << text;
    };
    refusal("width", "the name is missing");
    refusal("width=16", "one choice alone");
    refusal("width=16||64", "a choice is empty");
    refusal("rate=0.1..0.01", "the first number is below the second");
    refusal("rate=0..1:log", "logarithms are of numbers above 0");
    refusal("rate=a..b", "--space 'rate=a..b'");
    EXPECT_THAT([] { (void)with_values("gpt-h{wide}", {}, {}); },
                ThrowsMessage<InputError>(HasSubstr("--space wide=...")));
}

// By hand: 8 trials of 5 steps, the best 4 to 10, 2 to 20, 1 to 40.
TEST(Halving, TrainsTheBetterHalfTwiceAsLong) {
    const Found found = searched("halving", {.population = 8, .rounds = 9, .steps = 5, .fixed = {false, false}});
    ASSERT_EQ(found.rounds.size(), 4U);
    for (std::size_t round = 0; round < 4; ++round) {
        EXPECT_EQ(found.rounds[round].size(), 8U >> round);
        for (const Turn& turn : found.rounds[round]) EXPECT_EQ(turn.until, 5 << round);
    }
    const int last = found.rounds[3].front().trial;
    EXPECT_EQ(found.trials[static_cast<std::size_t>(last)].loss, found.best());
    EXPECT_EQ(found.rounds[1].front().from, found.rounds[1].front().trial) << "it goes on from its own weights";
}

TEST(PopulationBased, TheWorstFifthTakesAnothersWeightsAndKeepsTheNetwork) {
    const Settings settings{.population = 10, .rounds = 6, .steps = 3, .fixed = {true, false}};
    std::vector<Trial> trials;
    (void)strategy("pbt").next(settings, trials, 0);
    for (Trial& each : trials) each.loss = bowl(each.point), each.steps = 3;
    const std::vector<Trial> before = trials;
    int moved = 0;
    for (const Turn& turn : strategy("pbt").next(settings, trials, 1)) {
        EXPECT_EQ(turn.until, 6);
        if (turn.from == turn.trial) continue;
        ++moved;
        const auto loser = static_cast<std::size_t>(turn.trial), winner = static_cast<std::size_t>(turn.from);
        EXPECT_GT(before[loser].loss, before[winner].loss);
        EXPECT_EQ(trials[loser].point[0], before[winner].point[0]);
        EXPECT_NE(trials[loser].point[1], before[winner].point[1]);
    }
    EXPECT_EQ(moved, 2);
}

// 16 points at random are about 0.03 from the lowest point; strategies that look where it was good come nearer.
TEST(Strategies, FindTheLowestPointOfABowl) {
    const Settings settings{.population = 16, .rounds = 20, .steps = 1, .seed = 5, .fixed = {false, false, false}};
    const double by_chance = searched("random", settings).best();
    EXPECT_LT(searched("pso", settings).best(), 1e-3);
    EXPECT_LT(searched("evolution", settings).best(), by_chance / 2);
    EXPECT_LT(searched("pbt", settings).best(), by_chance) << "steps of a tenth";
}

TEST(Strategies, AreTheSameForTheSameSeed) {
    for (const Strategy& each : strategies()) {
        const Settings settings{.population = 6, .rounds = 4, .steps = 2, .seed = 3, .fixed = {false, true}};
        const Found a = searched(each.name, settings), b = searched(each.name, settings);
        EXPECT_EQ(a.rounds, b.rounds) << each.name;
        for (std::size_t i = 0; i < a.trials.size(); ++i) EXPECT_EQ(a.trials[i].point, b.trials[i].point) << each.name;
        for (const Trial& trial : a.trials)
            for (const double place : trial.point) EXPECT_TRUE(place >= 0 && place < 1) << each.name;
    }
    EXPECT_THAT([] { (void)strategy("halfing"); }, ThrowsMessage<InputError>(HasSubstr("did you mean 'halving'")));
}

// By hand: 5, 4, 3, 3, 3 on two ranks are 5 + 3 and 4 + 3 + 3.
// Four trials of ten steps on two ranks, a step costs 1 at a point above one half and 3 elsewhere.
TEST(Rounds, TakeAsLongAsTheRankThatHasMost) {
    const Settings settings{.population = 4, .rounds = 1, .steps = 10, .seed = 3, .fixed = {false}};
    std::vector<double> costs;
    const auto cost = [&](const Point& point) { return costs.emplace_back(point[0] > 0.5 ? 1 : 3); };
    const auto train = [&](const std::vector<Trial>&, const std::vector<Turn>& turns, const Division& division, int) {
        EXPECT_EQ(division.ranks.size(), 4U);
        return Results{{0.5, std::nan(""), 2, 1}, std::vector<double>(turns.size(), 1.5)};
    };
    const Outcome outcome = search("random", settings, 2, cost, train);
    ASSERT_EQ(outcome.rounds.size(), 1U);
    ASSERT_EQ(costs.size(), 4U);
    const double sum = 10 * (costs[0] + costs[1] + costs[2] + costs[3]);
    EXPECT_GE(outcome.rounds[0].cost, sum / 2);
    EXPECT_LE(outcome.rounds[0].cost, sum / 2 + 15);
    EXPECT_GE(outcome.rounds[0].trained_s, 3) << "of four trials of 1.5 s one rank has two at least";
    EXPECT_EQ(outcome.trials[1].loss, unknown) << "it diverged";
    EXPECT_EQ(outcome.trials[2].loss, 2);
    EXPECT_EQ(outcome.trials[3].steps, 10);
}

TEST(Ranks, TheLongestTrialsComeFirst) {
    const std::vector<double> costs{3, 5, 3, 4, 3};
    const Division found = divided(costs, 2);
    EXPECT_DOUBLE_EQ(found.longest, 10);
    EXPECT_THAT(found.ranks, ElementsAre(1, 0, 0, 1, 1));
    EXPECT_DOUBLE_EQ(divided(costs, 9).longest, 5);
}

// 4 trials are halved twice, whatever is asked for.
TEST(Strategies, SayHowLongTheirLongestTrialIs) {
    for (const auto& [name, most] :
         {std::pair{"random", 60.0}, {"halving", 40.0}, {"pbt", 60.0}, {"evolution", 10.0}, {"pso", 10.0}}) {
        const Settings settings{.population = 4, .rounds = 6, .steps = 10, .fixed = {false}};
        EXPECT_EQ(strategy(name).most(settings), most) << name;
        int longest = 0;
        for (const auto& round : searched(name, settings).rounds)
            for (const Turn& turn : round) longest = std::max(longest, turn.until);
        EXPECT_EQ(longest, most) << name;
    }
}

}  // namespace
}  // namespace rehearse::study
