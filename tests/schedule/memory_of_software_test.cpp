// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory_of_software.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/models.hpp"
#include "schedule/memory.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

Plan with_habits(const char* text, const MemoryHabits& habits) {
    Plan plan = parse_plan(text);
    plan.methods.edit<MemoryHabits>() = habits;
    return plan;
}

MemoryUse use_of(const Network& network, const char* plan, const MemoryHabits& habits, std::int64_t devices = 1,
                 Precision precision = Precision::fp32) {
    return memory_use(make_schedule(network, sixes(), with_habits(plan, habits),
                                    {.devices = devices, .batch_per_device = 1, .precision = precision}));
}

// A head of 32 scores on 4 numbers, one sample. loss:backward_data holds the input (16 B of f32, 8 of f16) and of each
// score, beside it and its gradient (8 B, 4 B): by PyTorch's allocator 12 B in all, by Megatron-LM 4 B in f32 and the
// score.
TEST(MemoryOfSoftware, OfALossByWhatMakesIt) {
    using Loss = MemoryHabits::Loss;
    Network n{.name = "head", .layers = {}};
    const int input = add(n, "input", Input{{4}}, {});
    add(n, "loss", SoftmaxLoss{32}, {add(n, "head", MatMul{.m = 1, .n = 32, .k = 4, .bias = false}, {input})});
    const auto held = [&](Loss loss, Precision precision) {
        const MemoryUse use = use_of(n, "data", {.loss = loss}, 1, precision);
        return (use.activations + use.activation_gradients).value;
    };
    EXPECT_EQ(held(Loss::kernel, Precision::fp32), 16 + 8 * 32);
    EXPECT_EQ(held(Loss::fused, Precision::fp32), 16 + 8 * 32);
    EXPECT_EQ(held(Loss::operators, Precision::fp32), 16 + 12 * 32);
    EXPECT_EQ(held(Loss::kernel, Precision::mixed), 8 + 4 * 32);
    EXPECT_EQ(held(Loss::fused, Precision::mixed), 8 + 6 * 32);
    EXPECT_EQ(held(Loss::operators, Precision::mixed), 8 + 12 * 32);
}

// Ranks that have some of the scores each keep what they make of theirs.
TEST(MemoryOfSoftware, OfALossWhoseScoresAreShared) {
    const MemoryHabits habits{.loss = MemoryHabits::Loss::operators};
    const LossCopies copies = loss_copies(SoftmaxTerms{.classes = 16, .rows = 3, .parts = 2}, habits, Bytes{2});
    EXPECT_EQ(copies.kept, 4 * 16 * 3);
    EXPECT_EQ(copies.working, 4 * 16 * 3);
    EXPECT_EQ(loss_copies(Activation{Nonlinearity::relu, {3}}, habits, Bytes{2}).kept, 0);
}

// Four layers of 72 parameters, a bucket each: what arrives goes into one of them, or all lie beside their gradients.
TEST(MemoryOfSoftware, OfBucketsThatAreCopies) {
    const MemoryHabits copies{.bucket_copies = true};
    const auto buffers = [&](const char* plan, const MemoryHabits& habits, std::int64_t devices) {
        return use_of(tower(4), plan, habits, devices).communication;
    };
    EXPECT_EQ(buffers("data:first=1B:bucket=1B", {}, 2), Bytes{72 * 4});
    EXPECT_EQ(buffers("data:first=1B:bucket=1B", copies, 2), Bytes{4 * 72 * 4});
    EXPECT_EQ(buffers("data:first=1B:bucket=1B", copies, 1), Bytes{0}) << "nobody to sum with";
    EXPECT_EQ(buffers("data:first=1B:bucket=1B:zero=3", copies, 2), buffers("data:first=1B:bucket=1B:zero=3", {}, 2));
}

// 16 values of 4 B, a pool that gives one of them, 4 B: both, and the index, are there when its gradient is made.
TEST(MemoryOfSoftware, OfMaxPoolsKeepsIndices) {
    const auto held = [](PoolKind kind, double index) {
        Network n{.name = "pooled", .layers = {}};
        const int input = add(n, "input", Input{{1, 4, 4}}, {});
        const int c = add(n, "c", Conv{.channels = 1, .height = 4, .width = 4, .filters = 1, .window = {}}, {input});
        const int pool = add(n, "pool", Pool{kind, 1, 4, 4, {.kernel_h = 4, .kernel_w = 4}}, {c});
        add(n, "loss", SoftmaxLoss{1}, {add(n, "flatten", Flatten{{1, 1, 1}}, {pool})});
        return use_of(n, "data", {.pool_index = index}).activations.value;
    };
    EXPECT_EQ(held(PoolKind::max, 8), held(PoolKind::max, 0) + 8);
    EXPECT_EQ(held(PoolKind::average, 8), held(PoolKind::average, 0));
}

// What takes time to move lies in memory: selene's software is Megatron-LM of 2021, whose scores cross it 6.5 times,
// eos' that of 2024, whose attention is fused. The plan says more than either.
TEST(MemoryOfSoftware, KeepsProbabilitiesWhereItsTimeMovesThem) {
    const auto kept = [](const char* machine, const Plan& plan, std::int64_t devices = 1) {
        const Schedule schedule = make_schedule(models::load_network("gpt-h64-a2-l1-v256@64"),
                                                models::load_machine(machine), plan, {.devices = devices});
        return std::ranges::any_of(schedule.network.layers, [](const Layer& layer) {
            const auto* attention = std::get_if<Attention>(&layer.op);
            return attention != nullptr && attention->kept;
        });
    };
    EXPECT_TRUE(kept("selene", parse_plan("data")));
    EXPECT_FALSE(kept("selene", parse_plan("data:attention=fused")));
    EXPECT_FALSE(kept("selene", with_habits("data", {.keeps_probabilities = false})));
    EXPECT_FALSE(kept("eos", parse_plan("data")));
    EXPECT_TRUE(kept("eos", parse_plan("data:attention=kept")));
    EXPECT_TRUE(kept("eos", with_habits("data", {.keeps_probabilities = true})));
    EXPECT_FALSE(kept("selene", parse_plan("data=1,context=2:ring=on"), 2));
    EXPECT_EQ(habits_of(parse_plan("data"), models::load_machine("selene")).loss, MemoryHabits::Loss::operators);
    EXPECT_EQ(habits_of(parse_plan("data"), sixes()).loss, MemoryHabits::Loss::kernel);
}

}  // namespace
}  // namespace rehearse::schedule
