// SPDX-License-Identifier: Apache-2.0
// Prices behind a host that issues ahead of its device.
#include <gtest/gtest.h>

#include <string>

#include "models/models.hpp"
#include "predict/language_time.hpp"
#include "predict/predict.hpp"
#include "prices/tile_model.hpp"
#include "tests/predict/language_example.hpp"

namespace rehearse::predict {
namespace {

using namespace rehearse::literals;

struct Sums {
    double computed = 0, issued = 0, apart = 0, behind = 0;  // seconds of all compute steps
};

// A step on one H100 whose host takes `issue` a kernel: what the device computes, what the host issues, the larger of
// both for each operator, and what is priced behind a host that issues ahead.
Sums sums_of(const std::string& network, std::int64_t batch, Seconds issue) {
    Machine machine = models::load_machine("eos");
    const Schedule schedule = schedule::make_schedule(
        models::load_network(network), machine, schedule::parse_plan("data"),
        {.devices = 1, .batch_per_device = batch, .precision = Precision::bf16, .optimizer = Optimizer::adam});
    DeviceClass& device = machine.classes.front();
    TileModel tiles = *device.tiles;
    const auto with_issue = [&](Seconds time) {
        tiles.issue.value = time;
        device.tiles = std::make_shared<const TileModel>(tiles);
        return device;
    };
    const DeviceClass alone = with_issue({}), issuing = with_issue(issue);
    const DeviceClass behind = priced(machine, schedule, {}).classes.front();
    Sums sums;
    for (const Step& step : schedule.classes.front().steps) {
        const Problem* problem = problem_of(step);
        if (problem == nullptr) continue;
        sums.computed += price(*problem, alone).time.value;
        sums.issued += issue_time(*problem, issuing).value;
        sums.apart += price(*problem, issuing).time.value;
        sums.behind += price(*problem, behind).time.value;
    }
    return sums;
}

TEST(HostThatIssuesAhead, IsNotWaitedForWhereTheDeviceHasEnoughToDo) {
    const Sums sums = sums_of("gpt-h4096-a32-l2@2048", 8, 300_us);
    EXPECT_GT(sums.computed, 1.5 * sums.issued);
    EXPECT_NEAR(sums.behind / sums.computed, 1, 0.02) << "but for the first operators";
    EXPECT_GT(sums.apart, 1.03 * sums.computed) << "small operators among large ones";
}

TEST(HostThatIssuesAhead, DecidesWhereTheDeviceHasNot) {
    const Sums sums = sums_of("gpt-h128-a2-l4@128", 1, 1_ms);
    EXPECT_GT(sums.issued, 10 * sums.computed);
    EXPECT_NEAR(sums.behind / sums.issued, 1, 0.01);
}

// In between, a step takes as long as the longer of both at least, and no longer than operator by operator.
TEST(HostThatIssuesAhead, IsBetween) {
    const Sums sums = sums_of("gpt-h1024-a16-l4@512", 1, 38_us);
    EXPECT_GE(sums.behind * (1 + 1e-9), std::max(sums.computed, sums.issued));
    EXPECT_LE(sums.behind, sums.apart * (1 + 1e-9));
}

TEST(HostThatIssuesAhead, IsThatOfProgramsOfToday) {
    EXPECT_TRUE(issues_ahead(models::load_machine("eos")));
    EXPECT_FALSE(issues_ahead(models::load_machine("selene"))) << "fitted operator by operator";
    EXPECT_FALSE(issues_ahead(models::load_machine("summit")));
}

// Qwen3 30B, whose 128 experts are so small that the host decides, on eight B200, two micro-batches of one sequence of
// 4,096 tokens: as the closed form, which is held to published steps (docs/language_models.md).
TEST(Mixture, TakesAsLongAsItsClosedForm) {
    LanguageModel model;
    model.layers = 48;
    model.hidden = 2048;
    model.heads = 32;
    model.key_heads = 4;
    model.head_size = 128;
    model.ffn = 6144;
    model.vocabulary = 151936;
    model.sequence = 4096;
    model.experts = 128;
    model.top = 8;
    model.expert_ffn = 768;
    LanguagePlan plan;
    plan.data = 8;
    plan.experts = 8;
    plan.microbatches = 2;
    Job job{.network = models::load_network("qwen3-30b-a3b@4096"),
            .machine = models::load_machine("dgx-b200"),
            .plan = schedule::parse_plan("data=1:zero=1:microbatches=2,expert=8"),
            .devices = {8},
            .global_batch = 16,
            .precision = Precision::bf16,
            .optimizer = Optimizer::adam,
            .bands = false};
    follow(job, models::load_framework("megatron-core"));
    const LanguageNode node{8, Bandwidth{606e9}, Bandwidth{40e9}, 8, 1, 1, false, 1};
    const Seconds closed = total(language_time(model, plan, job.machine.classes.front(), node));
    EXPECT_NEAR(predict(job).points.at(0).figures.time.step / closed, 1, 0.05);
}

}  // namespace
}  // namespace rehearse::predict
