// SPDX-License-Identifier: Apache-2.0
// What recipes say of transformers with experts, by figures made by hand.
#include <gtest/gtest.h>

#include "prices/tile_model.hpp"
#include "tests/predict/language_example.hpp"

namespace rehearse::predict {
namespace {

// Eight blocks of 16 experts, two a row; 4 tokens of 4,096 values of 16 bits.
LanguageModel few_tokens() {
    LanguageModel m = large();
    m.sequence = 4;
    m.experts = 16;
    m.top = 2;
    m.expert_ffn = 1024;
    return m;
}
constexpr double rows_of_rank = 4 * 4096 * 2.0;

double messages(const LanguagePlan& plan) {
    return language_time(few_tokens(), plan, a100(), node_of_eight).messages.value;
}

// Two experts of 16 on eight devices are on 8 (1 - (7/8)^2) = 1.875 of them.
TEST(LanguageExperts, SendARowOnceToEachDevice) {
    LanguagePlan plan;
    plan.data = plan.experts = 8;
    plan.expert_rows = ExpertRows::once;
    EXPECT_NEAR(messages(plan), 8 * 4 * (1.875 * 7 / 8 * rows_of_rank / (0.96 * 230e9) + 33e-6), 1e-12);
}

// Blocks that are computed again in whole send their rows and take them back once more.
TEST(LanguageExperts, SendRowsOnceMoreForAFullRecomputation) {
    LanguagePlan plan;
    plan.data = plan.experts = 8;
    const double four = messages(plan);
    plan.recompute = Recomputation::full;
    EXPECT_NEAR(messages(plan), 1.5 * four, 1e-12);
    plan.recompute = Recomputation::selective;
    EXPECT_NEAR(messages(plan), four, 1e-12);
}

// Of two nodes: half of both copies leave; or half of 2 (1 - 1/4) = 1.5 nodes; or half of the one node of its own.
TEST(LanguageExperts, SendARowToEachExpertOrNodeOrToFewNodes) {
    LanguagePlan plan;
    plan.data = plan.experts = 16;
    plan.expert_rows = ExpertRows::each;
    EXPECT_NEAR(messages(plan), 8 * 4 * (rows_of_rank / (0.75 * 20e9) + 33e-6), 1e-12);
    plan.expert_rows = ExpertRows::once;
    EXPECT_NEAR(messages(plan), 8 * 4 * (0.75 * rows_of_rank / (1.1 * 20e9) + 33e-6), 1e-12);
    plan.nodes_of_row = 1;
    EXPECT_NEAR(messages(plan), 8 * 4 * (0.5 * rows_of_rank / (1.1 * 20e9) + 33e-6), 1e-12);
}

// Two tensor ranks share a micro-batch's rows: each sends half of them to experts.
TEST(LanguageExperts, TakeRowsOfEachTensorRank) {
    LanguagePlan plan;
    plan.tensor = 2;
    plan.data = 8;
    plan.sequence_parallel = true;
    const double of_tensor_group = messages(plan);
    plan.experts = 16;
    EXPECT_NEAR(messages(plan) - of_tensor_group, 8 * 4 * (0.75 * rows_of_rank / 2 / (0.75 * 20e9) + 33e-6), 1e-12);
}

// Computation is longer: what is left of messages is the 20 of 132 processors that they hold.
TEST(LanguageExperts, HideMessagesBesideAnotherMicroBatch) {
    LanguagePlan plan;
    plan.data = plan.experts = 8;
    const double seen = messages(plan);
    plan.experts_beside = true;
    EXPECT_NEAR(messages(plan), seen * 20 / 132, 1e-12);
}

// 4 tokens are bound by the host: 24 operators of a block and 45 of its experts at 38 us, and twice as many backward;
// with graphs one and 15.
TEST(LanguageExperts, TakeTheHostItsOperators) {
    LanguagePlan plan;
    plan.data = plan.experts = 8;
    const auto compute = [&] { return language_time(few_tokens(), plan, a100(), node_of_eight).compute.value; };
    const double all = compute();
    plan.graphs = HostGraphs::parts;
    const double some = compute();
    EXPECT_NEAR(all - some, 8 * 3 * (69 - 16) * 38e-6, 1e-9);
    plan.graphs = HostGraphs::step;
    EXPECT_LT(compute(), some);
}

// On two nodes each expert has two replicas, one a node, by an adapter of its own; all else passes all eight.
TEST(LanguageExperts, SumGradientsByTheirOwnAdapter) {
    LanguagePlan plan;
    plan.data = 16;
    plan.experts = 8;
    plan.overlap = false;
    const BlockWeights weights = stage_weights(few_tokens(), plan, StageIndex{0});
    EXPECT_NEAR(language_time(few_tokens(), plan, a100(), node_of_eight).gradients.value,
                6 * weights.dense * 15 / 16 / 160e9 + 6 * weights.experts / 2 / 20e9, 1e-9);
    plan.half_sums = true;
    EXPECT_NEAR(language_time(few_tokens(), plan, a100(), node_of_eight).gradients.value,
                4 * weights.dense * 15 / 16 / 160e9 + 4 * weights.experts / 2 / 20e9, 1e-9);
}

// Sums begin with the last of four micro-batches: one is beside them; of two chunks on two stages one and a half.
TEST(LanguageSums, HaveRoomBesideTheLastMicroBatch) {
    LanguageModel m = few_tokens();
    m.experts = 0;
    m.sequence = 1024;
    LanguageNode slow = node_of_eight;
    slow.outside = Bandwidth{1e9};
    slow.board.cards = 16;
    LanguagePlan plan;
    plan.data = 16;
    plan.microbatches = 4;
    plan.overlap = false;
    const double seen = language_time(m, plan, a100(), slow).gradients.value;
    plan.overlap = true;
    const LanguageTime time = language_time(m, plan, a100(), slow);
    EXPECT_NEAR(seen - time.gradients.value, time.compute.value / 4, 1e-9);
    plan.pipe = plan.chunks = 2;
    plan.data = 8;
    plan.overlap = false;
    const double of_stages = language_time(m, plan, a100(), slow).gradients.value;
    plan.overlap = true;
    const LanguageTime chunks = language_time(m, plan, a100(), slow);
    EXPECT_NEAR(of_stages - chunks.gradients.value, 1.5 * chunks.compute.value / 4, 1e-9);
}

// Weights are cast once a step, four bytes each, but by those who gather them for each micro-batch.
TEST(LanguageCasts, OfWeightsAreMadeOnceAStep) {
    LanguageModel m = few_tokens();
    m.experts = 0;
    m.sequence = 4096;  // not bound by the host
    const DeviceClass device = models::load_machine("eos").classes.at(0);
    LanguagePlan plan;
    plan.microbatches = 4;
    const double of_16_bits = language_time(m, plan, device, node_of_eight).update.value;
    plan.type = DataType::fp8;
    const LanguageTime once = language_time(m, plan, device, node_of_eight);
    const double blocks = 8 * weights_of(m, plan, 0).dense;
    const double memory = device.memory_bandwidth.value.value * device.tiles->memory.value;
    EXPECT_NEAR(once.update.value - of_16_bits, 4 * blocks / memory, 1e-9);
    plan.zero = 3;
    EXPECT_GT(language_time(m, plan, device, node_of_eight).compute, once.compute);
}

// ZeRO 3 of four micro-batches that keeps what it gathered moves 2 + 4 bytes a weight once, not 2 + 2 + 4 four times,
// and has weights and gradients whole.
TEST(LanguageSums, AreMadeOnceWhereWeightsAreKept) {
    LanguageModel m = few_tokens();
    m.experts = 0;
    LanguagePlan plan;
    plan.software = LanguageSoftware::pytorch;
    plan.data = 8;
    plan.zero = 3;
    plan.microbatches = 4;
    plan.overlap = false;
    const DeviceClass device = a100();
    const double memory = device.memory_bandwidth.value.value * device.tiles->memory.value;
    const double weights = stage_weights(m, plan, StageIndex{0}).dense;
    const auto gradients = [&] { return language_time(m, plan, device, node_of_eight).gradients.value; };
    EXPECT_NEAR(gradients(), weights * (4 * 8 * 7.0 / 8 / 230e9 + 4 * 14 / memory), 1e-9);
    plan.weights_kept = true;
    EXPECT_NEAR(gradients(), weights * (6 * 7.0 / 8 / 230e9 + 14 / memory), 1e-9);
    EXPECT_NEAR(language_memory(m, plan).weights.value, 2 * weights, 1);
    EXPECT_NEAR(language_memory(m, plan).gradients.value, 2 * weights, 1);
}

// Tensor ranks count among an expert's: of 2 x 4 devices two have each of four parts of the experts.
TEST(LanguageExperts, ShareTheirOptimizerOverTheirReplicas) {
    LanguagePlan plan;
    plan.tensor = 2;
    plan.data = 4;
    plan.experts = 4;
    const BlockWeights weights = stage_weights(few_tokens(), plan, StageIndex{0});
    EXPECT_NEAR(language_memory(few_tokens(), plan).optimizer.value, 12 * (weights.dense / 4 + weights.experts / 2), 1);
}

// Kept no longer: one of both rows of each normalization; three values of a feed-forward layer's 1,024; queries, keys
// and values before they are joined, the result alone of them.
TEST(LanguageParts, AreNotKeptWhenComputedAgain) {
    LanguageModel m = few_tokens();
    const auto kept = [&m](const LanguagePlan& plan) { return language_memory(m, plan).activations.value; };
    const auto with = [](auto set) {
        LanguagePlan plan;
        set(plan.again);
        return plan;
    };
    EXPECT_NEAR(kept({}) - kept(with([](RecomputedParts& p) { p.norms = true; })), 8 * 2 * 2 * 4 * 4096.0, 1e-6);
    EXPECT_NEAR(kept({}) - kept(with([](RecomputedParts& p) { p.activations = true; })), 8 * 2 * 8 * 1024.0, 1e-6);
    m.experts = 0;
    m.ffn = 1024;
    EXPECT_NEAR(kept({}) - kept(with([](RecomputedParts& p) { p.feed_forward = true; })), 8 * 2 * 4 * 3 * 1024.0, 1e-6);
    m.latent = {512, 256, 64, 128};
    EXPECT_NEAR(kept({}) - kept(with([](RecomputedParts& p) { p.up_projections = true; })),
                8 * 2 * 4 * 32 * (2 * (128 + 64 + 128) - 128.0), 1e-6);
}

// Each part makes the step longer, and all of them less so than a whole pass.
TEST(LanguageParts, TakeTimeWhenComputedAgain) {
    LanguageModel m = few_tokens();
    m.sequence = 4096;
    m.dense_layers = 4;
    m.dense_ffn = 8192;
    m.latent = {512, 256, 64, 128};
    const auto compute = [&m](const LanguagePlan& plan) {
        return language_time(m, plan, a100(), node_of_eight).compute;
    };
    LanguagePlan plan;
    Seconds last = compute(plan);
    for (bool RecomputedParts::*part : {&RecomputedParts::norms, &RecomputedParts::activations,
                                        &RecomputedParts::feed_forward, &RecomputedParts::up_projections}) {
        plan.again.*part = true;
        EXPECT_GT(compute(plan), last);
        last = compute(plan);
    }
    LanguagePlan whole;
    whole.recompute = Recomputation::full;
    EXPECT_LT(last, compute(whole));
}

}  // namespace
}  // namespace rehearse::predict
