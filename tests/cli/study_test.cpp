// SPDX-License-Identifier: Apache-2.0
// `rehearse study` as users start it.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class Study : public Program {
protected:
    Json json(const std::string& arguments) const {
        const Output output = run("study -q " + arguments + " --format json");
        EXPECT_EQ(output.code, 0) << output.err;
        return Json::parse(output.out);
    }
};

const std::string small =
    "--model 'gpt-h{width}-a2-l1-v16@8' --space 'width=8|16' --space learning-rate=1e-2..1:log --batch 2 ";

// 4 trials of 3 steps, 2 to 6, 1 to 12: whoever went on has its steps, and each loss stands beside its network.
TEST_F(Study, HalvingTrainsWhatItSays) {
    const Json found = json(small + "--population 4 --rounds 5 --steps 3");
    ASSERT_EQ(found["rounds"].size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found["rounds"][i]["trials"], 4 >> i);
    ASSERT_EQ(found["trials"].size(), 4U);
    std::multiset<int> steps;
    for (const Json& trial : found["trials"]) {
        steps.insert(trial["steps"].get<int>());
        EXPECT_THAT(trial["model"].get<std::string>(), testing::MatchesRegex("gpt-h(8|16)-a2-l1-v16@8"));
        EXPECT_GT(trial["loss"].get<double>(), 0);
    }
    EXPECT_EQ(steps, (std::multiset<int>{3, 3, 6, 12}));
}

// What a trial comes to is what `run` makes of the same network, rate and seed: the mean of its last quarter's losses.
TEST_F(Study, ATrialIsATrainingAsRunHasIt) {
    const Json found = json(
        "--model 'gpt-h8-a2-l1-v16@8' --space learning-rate=0.1..0.5 --batch 2 --strategy random "
        "--population 2 --rounds 1 --steps 8");
    const Json& best = found["trials"][0];
    const std::string rate = best["values"].get<std::string>().substr(std::string("learning-rate ").size());
    const Output alone =
        run("run --tune off -q --model gpt-h8-a2-l1-v16@8 --batch 2 --steps 8 --format json --learning-rate " + rate);
    ASSERT_EQ(alone.code, 0) << alone.err;
    const Json steps = Json::parse(alone.out)["steps"];
    const double mean = (steps[6]["loss"].get<double>() + steps[7]["loss"].get<double>()) / 2;
    EXPECT_NEAR(best["loss"].get<double>(), mean, 1e-6 * mean);
}

// 960 trials of 10 steps on 96 devices are ten a device; a step of the same network is predict's.
TEST_F(Study, PredictsWithoutTraining) {
    const Json found = json(
        "--model resnet50 --batch 32 --space learning-rate=1e-3..1:log --strategy random --rounds 1 "
        "--population 960 --steps 10 --machine summit --devices 96");
    const Output alone = run("predict --model resnet50 --batch 32 --machine summit --devices 1 --format json");
    const double step = Json::parse(alone.out)["points"][0]["step_s"].get<double>();
    EXPECT_NEAR(found["rounds"][0]["predicted_s"].get<double>(), 100 * step, 1e-6 * step);
    EXPECT_FALSE(found["rounds"][0].contains("measured_s"));
}

TEST_F(Study, MistakesAreNamed) {
    for (const auto& [arguments, why] :
         {std::pair{"--space depth=1..3 --model mlp", "--space depth=1..3: neither {depth} of"},
          {"--model mlp", "--space: what is to be varied is missing"},
          {"--model mlp --space momentum=0..1 --strategy swarm", "--strategy 'swarm'"},
          {"--model gpt-h{w}-a2-l1 --space momentum=0..1", "'{w}' is no parameter"},
          {"--model mlp --space momentum=0..0.9 --devices 4", "--machine is missing"},
          {"--model mlp --space momentum=0..0.9 --population 1", "--population"},
          {"--model mlp --space momentum=0..0.9 --steps 100000 --rounds 20 --population 100000", "1e9 at most"},
          {"--model mlp --space momentum=0..0.9 --strategy pbt --steps 1000000 --rounds 1001", "1e9 at most"},
          {"--model mlp --space momentum=0..0.9 --population 100000 --rounds 101 --strategy pso", "1e7 at most"},
          {"--model mlp --space momentum=0..0.9 --machine summit --devices 100000", "summit has 1 to 27648"}}) {
        const Output output = run(std::string{"study "} + arguments);
        EXPECT_EQ(output.code, 2) << arguments;
        EXPECT_THAT(output.err, HasSubstr(why)) << arguments;
    }
}

// The limit of halving, whose trials train twice as long each round, is not that of the others.
TEST_F(Study, OfMoreRoundsThanHalvingHas) {
    const Json found = json(
        "--model mlp --space learning-rate=1e-3..1:log --strategy evolution --rounds 30 --population 4 --steps 1 "
        "--machine summit --devices 4");
    EXPECT_EQ(found["rounds"].size(), 30U);
}

}  // namespace
}  // namespace rehearse
