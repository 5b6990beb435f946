// SPDX-License-Identifier: Apache-2.0
// `rehearse search` as users start it: what it prints, and the batch scripts that it writes.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Search : public Program {
protected:
    Json json(const std::string& arguments) const {
        const Output output = run("search " + arguments + " --format json");
        EXPECT_EQ(output.code, 0) << output.err;
        return Json::parse(output.out);
    }
};

constexpr const char* small = "--model resnet50 --machine summit --devices 12 --global-batch 768 --top 2 ";

// 1,281,167 samples 90 times, in steps of 768 samples, on 2 nodes of 6 devices.
TEST_F(Search, SaysWhatAWholeTrainingTakes) {
    const Json found = json(std::string{small} + "--dataset 1281167 --epochs 90");
    ASSERT_EQ(found["plans"].size(), 2U);
    for (const Json& plan : found["plans"]) {
        EXPECT_EQ(plan["global_batch"], 768);
        const double training = 90 * 1281167.0 / 768 * plan["step_s"].get<double>();
        EXPECT_NEAR(plan["training_s"].get<double>(), training, 1e-9 * training);
        EXPECT_NEAR(plan["node_hours"].get<double>(), 2 * training / 3600, 1e-9 * training);
    }
}

// What is refused is named by what was tried, in no option that the user has not given.
TEST_F(Search, SaysWhichPlansCannotBe) {
    const Output output =
        run("search --model gpt-h96-a6-l8-v1024@64 --machine dgx-a100 --devices 8 --global-batch 8 --top 2 "
            "--memory-limit 1MB");
    EXPECT_EQ(output.code, 4) << output.out;
    EXPECT_THAT(output.err, HasSubstr("no plan was found"));
    EXPECT_THAT(output.err, Not(HasSubstr("--plan")));
    EXPECT_THAT(output.err, Not(HasSubstr("data=1'")));
    EXPECT_THAT(output.err, Not(HasSubstr("than a device has")));
}

// A plan that a search ranks under a framework is predicted the same under it, and is another than without.
TEST_F(Search, UnderAFrameworkIsAsPredictUnderIt) {
    const Json found = json(std::string{small} + "--framework pytorch-ddp"), without = json(small);
    EXPECT_EQ(found["configuration"]["framework"], "pytorch-ddp");
    const Json& best = found["plans"][0];
    EXPECT_GT(best["step_s"].get<double>(), without["plans"][0]["step_s"].get<double>());
    const Output predicted =
        run("predict --model resnet50 --machine summit --devices 12 --global-batch 768 --mode folded "
            "--framework pytorch-ddp --format json --plan " +
            best["plan"].get<std::string>());
    ASSERT_EQ(predicted.code, 0) << predicted.err;
    EXPECT_EQ(Json::parse(predicted.out)["points"][0]["step_s"], best["step_s"]);
    const Output unknown = run(std::string{"search "} + small + "--framework pytorch-dpd");
    EXPECT_EQ(unknown.code, 2);
    EXPECT_THAT(unknown.err, HasSubstr("did you mean 'pytorch-ddp'"));
}

// With a critical batch of 768 twice as many epochs are needed, and a deadline means the training that they make.
TEST_F(Search, HoldsTheDeadlineToTheEpochsThatTheBatchNeeds) {
    const std::string training = std::string{small} + "--dataset 1281167 --epochs 1 --critical-batch 768 ";
    const Json free = json(training);
    const double takes = free["plans"][0]["training_s"].get<double>();
    EXPECT_NEAR(takes, 2 * 1281167.0 / 768 * free["plans"][0]["step_s"].get<double>(), 1e-9 * takes);
    EXPECT_EQ(run("search " + training + "--deadline " + std::to_string(0.75 * takes) + "s").code, 4);
}

}  // namespace
}  // namespace rehearse
