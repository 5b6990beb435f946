// SPDX-License-Identifier: Apache-2.0
// Fully sharded training as PyTorch's programs do it: what they copy beside their messages, and that the simulated step
// of a decoder is that of the closed form, which is held to published ones (docs/language_models.md).
#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "prices/tile_model.hpp"
#include "tests/predict/language_example.hpp"

namespace rehearse::predict {
namespace {

Framework of(const std::string& name) { return framework_of(models::load_framework(name), Optimizer::adam); }

Schedule sharded(const Network& network, const Machine& machine, const std::string& plan) {
    return schedule::make_schedule(network, machine, schedule::parse_plan(plan), {.devices = 2, .batch_per_device = 8});
}

// Seconds of all updates of a step.
double updates(const Machine& machine, const Schedule& schedule, const Framework& framework) {
    const Machine with = priced(machine, schedule, framework);
    double sum = 0;
    for (const Step& step : schedule.classes.front().steps) {
        if (const auto* update = std::get_if<Update>(&step.action))
            sum += price(update->problem, with.classes.front()).time.value;
    }
    return sum;
}

// LeNet-5's 61,706 weights in f32, three passes over what is gathered and five over gradients that are summed.
TEST(CopiesBesideShards, ArePassesOverWhatIsGatheredAndSummed) {
    const Machine machine = models::load_machine("summit");
    const Network network = models::load_network("lenet5");
    const DeviceClass& device = machine.classes.front();
    ASSERT_NE(device.tiles, nullptr);
    const double pass = 61706 * 4 / (device.memory_bandwidth.value.value * device.tiles->memory.value);
    const Framework copies{.copies = {.gathered = 3, .scattered = 5}};
    const auto more = [&](const std::string& plan) {
        const Schedule schedule = sharded(network, machine, plan);
        return updates(machine, schedule, copies) - updates(machine, schedule, {});
    };
    EXPECT_NEAR(more("data:zero=3") / pass, 3 + 5, 1e-6) << "one bucket, which stays for the backward pass";
    EXPECT_NEAR(more("data:zero=3:bucket=1kB:first=1kB") / pass, 2 * 3 + 5 - 3 * (10164 + 850) / 61706.0, 1e-6)
        << "the last two layers' stay";
    EXPECT_NEAR(more("data:zero=2") / pass, 3 + 5, 1e-6) << "gathered once, after the update";
    EXPECT_DOUBLE_EQ(more("data"), 0);
}

TEST(CopiesBesideShards, AreSaidByProfiles) {
    EXPECT_EQ(of("pytorch-ddp").copies, Copies{});
    EXPECT_EQ(of("pytorch-fsdp").copies, (Copies{.scattered = 1.5}));
    EXPECT_EQ(of("torchtitan").copies, (Copies{.gathered = 2, .scattered = 1.5}));
    models::FrameworkProfile wrong{.name = "mine", .summary = "", .settings = {{"gather_copies", "-1", "me"}}};
    EXPECT_THROW(static_cast<void>(copies_of(wrong)), InputError);
}

// Llama 3 8B on eight A100, sequences of 4,096 tokens.
TEST(ShardedDecoder, TakesAsLongAsItsClosedForm) {
    LanguageModel model = large();
    model.layers = 32;
    for (const bool compiled : {false, true}) {
        LanguagePlan plan;
        plan.data = 8;
        plan.zero = 3;
        plan.software = LanguageSoftware::pytorch;
        plan.compiled = compiled;
        Job job{.network = models::load_network("llama3-8b@4096"),
                .machine = models::load_machine("dgx-a100"),
                .devices = {8},
                .batch = 1,
                .precision = Precision::bf16,
                .optimizer = Optimizer::adam};
        follow(job, models::load_framework(compiled ? "torchtitan" : "pytorch-fsdp2"));
        job.bands = false;
        const Seconds closed = total(language_time(model, plan, job.machine.classes.front(), node_of_eight));
        EXPECT_NEAR(predict(job).points.at(0).figures.time.step / closed, 1, 0.04) << compiled;
    }
}

}  // namespace
}  // namespace rehearse::predict
