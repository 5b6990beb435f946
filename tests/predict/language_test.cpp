// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "prices/tile_model.hpp"
#include "tests/predict/language_example.hpp"

namespace rehearse::predict {
namespace {

// A decoder whose sums can be made by hand: hidden 8, two heads of 4, one for keys; 16 wide; 32 words; 4 tokens.
LanguageModel small() {
    LanguageModel m;
    m.layers = 2;
    m.hidden = 8;
    m.heads = 2;
    m.key_heads = 1;
    m.head_size = 4;
    m.ffn = 16;
    m.vocabulary = 32;
    m.sequence = 4;
    return m;
}

// A block: 8 x 4 x (2 x 2 + 2 x 1) of attention, 3 x 8 x 16, two gains of 8. Tables of 32 x 8 twice, the last gain.
TEST(LanguageMemory, CountsWeightsGradientsAndOptimizer) {
    const LanguageMemory one = language_memory(small(), {});
    const double weights = 2 * (192 + 384 + 16) + 2 * 256 + 8;
    EXPECT_DOUBLE_EQ(one.weights.value, 2 * weights);
    EXPECT_DOUBLE_EQ(one.gradients.value, 4 * weights);
    EXPECT_DOUBLE_EQ(one.optimizer.value, 12 * weights);
    LanguagePlan shared;
    shared.data = 4;
    EXPECT_DOUBLE_EQ(language_memory(small(), shared).optimizer.value, 3 * weights);
    EXPECT_DOUBLE_EQ(language_memory(small(), shared).gradients.value, 4 * weights);
    shared.zero = 3;
    EXPECT_DOUBLE_EQ(language_memory(small(), shared).weights.value, weights / 2);
    LanguagePlan whole;
    whole.type = DataType::f32;
    EXPECT_DOUBLE_EQ(language_memory(small(), whole).optimizer.value, 8 * weights);
}

// 4 tokens: four rows of 8, queries, keys, values and result of 2 + 1 + 1 + 2 heads of 4, three of 16; a sum a head.
TEST(LanguageMemory, CountsActivationsOfAllMicroBatchesInFlight) {
    const double block = 2 * 4 * (4 * 8 + 6 * 4 + 3 * 16) + 4 * 4 * 2;
    EXPECT_DOUBLE_EQ(language_memory(small(), {}).activations.value, 2 * block);
    LanguagePlan stages;
    stages.pipe = 2;
    stages.microbatches = 8;
    LanguageModel one_word = small();  // so that the loss does not make the last stage the fullest
    one_word.vocabulary = 1;
    const LanguageMemory first = language_memory(one_word, stages);
    EXPECT_EQ(first.stage, 0);
    EXPECT_DOUBLE_EQ(first.activations.value, 2 * block) << "one block, two micro-batches";
    EXPECT_EQ(first.loss.value, 0);
    LanguagePlan kept;
    kept.attention = AttentionKernel::kept;
    EXPECT_DOUBLE_EQ(language_memory(small(), kept).activations.value, 2 * (block + 2 * 4 * 4 * 2.0));
    LanguagePlan again;
    again.recompute = Recomputation::full;
    EXPECT_DOUBLE_EQ(language_memory(small(), again).activations.value, 2 * 2.0 * 4 * 8);
}

// Two blocks of 4 tokens: two more rows of 8 numbers are normalized, and queries and keys of 2 + 1 heads of 4.
TEST(LanguageMemory, KeepsWhatMoreNormsRead) {
    LanguageModel normed = small();
    const double plain = language_memory(small(), {}).activations.value;
    normed.more_norms = 2;
    EXPECT_DOUBLE_EQ(language_memory(normed, {}).activations.value, plain + 2 * 2 * 4 * 2 * 8.0);
    normed.more_norms = 0;
    normed.normed_heads = 12;
    EXPECT_DOUBLE_EQ(language_memory(normed, {}).activations.value, plain + 2 * 2 * 4 * 12.0);
}

// A block of 864 bytes (above) has kept its input of 4 rows of 8, 64 bytes. The last stage's loss is over by then: the
// larger of the two counts.
TEST(LanguageMemory, HasTheBlockThatIsComputedAgain) {
    LanguagePlan plan;
    plan.recompute = Recomputation::full;
    const LanguageMemory one = language_memory(small(), plan);
    EXPECT_DOUBLE_EQ(one.again.value, 864 - 64) << "more than the loss's 768";
    EXPECT_DOUBLE_EQ(one.loss.value, 0);
    EXPECT_DOUBLE_EQ(rows(one).back().bytes.value, total(one).value);
    LanguageModel words = small();
    words.vocabulary = 64;
    EXPECT_DOUBLE_EQ(language_memory(words, plan).again.value, 0);
    EXPECT_DOUBLE_EQ(language_memory(words, plan).loss.value, 6 * 4 * 64);
    plan.pipe = 2;
    plan.microbatches = 8;
    EXPECT_DOUBLE_EQ(language_memory(words, plan, StageIndex{0}).again.value, 864 - 64);
    EXPECT_DOUBLE_EQ(language_memory(words, {}).again.value, 0) << "all is kept";
}

// The gradient of scores beside that of their table, 2 x (4 x 32 + 32 x 8), is more than the scores in both types,
// 6 x 4 x 32, and with 64 tokens less.
TEST(LanguageMemory, HasTheFullerMomentOfTheLoss) {
    EXPECT_DOUBLE_EQ(language_memory(small(), {}).loss.value, 6 * 4 * 32);
    LanguageModel few = small();
    few.sequence = 1;
    EXPECT_DOUBLE_EQ(language_memory(few, {}).loss.value, 2 * (32 + 256));
}

// One stand-in a shape, however many blocks: 16 x 8, 8 x 8, 32 x 8, 8 x 16.
TEST(LanguageMemory, HasOneStandInForEachShapeOfWeights) {
    EXPECT_DOUBLE_EQ(language_memory(small(), {}).stand_ins.value, 2 * (128 + 64 + 256 + 128));
}

TEST(LanguageMemory, SharesExpertsAndRowsOut) {
    LanguageModel m = small();
    m.experts = 8;
    m.top = 2;
    m.expert_ffn = 4;
    LanguagePlan plan;
    plan.data = 4;
    plan.experts = 4;
    const BlockWeights weights = weights_of(m, plan, 0);
    EXPECT_DOUBLE_EQ(weights.experts, 3 * 8 * 4 * 2.0) << "two of eight experts";
    EXPECT_DOUBLE_EQ(weights.dense, 192 + 16 + 8 * 8) << "and the router";
    LanguagePlan tensor;
    tensor.tensor = 2;
    const Bytes whole = language_memory(small(), tensor).activations;
    tensor.sequence_parallel = true;
    EXPECT_LT(language_memory(small(), tensor).activations, whole);
}

// 6 operations a weight and token (but the embedding's), 3.5 times attention's 2 x 4096 x 4096 x 4096 / 2 x 2: at less
// than the peak, and at more than a third of it.
TEST(LanguageTime, IsBetweenThePeakAndAThirdOfIt) {
    const DeviceClass device = a100();
    const LanguageTime time = language_time(large(), {}, device, node_of_eight);
    const double weights = 8 * (4096.0 * 128 * 80 + 3 * 4096.0 * 14336) + 128256 * 4096.0;
    const double work = 6 * weights * 4096 + 8 * 3.5 * 2 * 4096.0 * 4096 * 4096;
    const Seconds best = Flops{work} / device.peak.at(DataType::bf16).value;
    EXPECT_GT(time.compute, best);
    EXPECT_LT(time.compute, 3 * best);
    EXPECT_EQ(time.messages.value, 0);
    EXPECT_EQ(time.bubble.value, 0);
    EXPECT_EQ(time.gradients.value, 0);
}

TEST(LanguageTime, PaysForItsPlan) {
    const DeviceClass device = a100();
    LanguagePlan stages;
    stages.pipe = 4;
    stages.microbatches = 4;
    const LanguageTime plain = language_time(large(), stages, device, node_of_eight);
    EXPECT_GT(plain.bubble.value, 0);
    stages.chunks = 2;
    EXPECT_NEAR(language_time(large(), stages, device, node_of_eight).bubble / plain.bubble, 0.5, 1e-12);
    LanguagePlan tensor;
    tensor.tensor = 8;
    EXPECT_GT(language_time(large(), tensor, device, node_of_eight).messages.value, 0);
    LanguagePlan again;
    again.recompute = Recomputation::full;
    EXPECT_GT(language_time(large(), again, device, node_of_eight).compute,
              1.2 * language_time(large(), {}, device, node_of_eight).compute)
        << "one pass of three and a half, the scores not";
    LanguagePlan data;
    data.data = 8;
    data.overlap = false;
    const LanguageTime seen = language_time(large(), data, device, node_of_eight);
    data.overlap = true;
    EXPECT_GT(seen.gradients, language_time(large(), data, device, node_of_eight).gradients);
}

LanguagePlan pytorch() {
    LanguagePlan plan;
    plan.software = LanguageSoftware::pytorch;
    plan.compiled = true;
    return plan;
}

DeviceClass h100() { return models::load_machine("eos").classes.at(0); }

TEST(LanguageTime, TellsRecipesApart) {
    const DeviceClass device = h100();
    const auto compute = [&](const LanguagePlan& plan) {
        return language_time(large(), plan, device, node_of_eight).compute;
    };
    LanguagePlan eager = pytorch();
    eager.compiled = false;
    EXPECT_GT(compute(eager), compute(pytorch()));
    LanguagePlan eight = pytorch();
    eight.type = DataType::fp8;
    eight.float8 = Float8Scaling::delayed;
    const Seconds delayed = compute(eight);
    eight.float8 = Float8Scaling::tensorwise;
    const Seconds tensorwise = compute(eight);
    eight.float8 = Float8Scaling::rowwise;
    EXPECT_GT(compute(eight), tensorwise);
    EXPECT_GT(tensorwise, delayed);
    EXPECT_LT(tensorwise, compute(pytorch()));
    LanguagePlan triton = pytorch();
    triton.attention = AttentionKernel::triton;
    EXPECT_GT(compute(triton), compute(pytorch()));
}

// 30 % of messages beside products of 16 bits, 15 % beside those of 8, whose operands are gathered in half the bytes.
TEST(LanguageTime, HidesMessagesOfAsynchronousTensorGroups) {
    const DeviceClass device = h100();
    for (const DataType type : {DataType::bf16, DataType::fp8}) {
        LanguagePlan plan = pytorch();
        plan.tensor = 8;
        plan.sequence_parallel = true;
        plan.type = type;
        plan.float8 = Float8Scaling::tensorwise;
        const Seconds seen = language_time(large(), plan, device, node_of_eight).messages;
        plan.async_tensor = true;
        const double left = type == DataType::fp8 ? 0.85 : 0.7;
        EXPECT_NEAR(language_time(large(), plan, device, node_of_eight).messages / seen, left, 1e-9);
    }
}

// Of four ranks with consecutive parts of a causal sequence the last has 7 of 16 of all scores, not 4.
TEST(LanguageTime, WaitsForTheLastPartOfACausalSequence) {
    const DeviceClass device = h100();
    LanguageModel longest = large();
    longest.sequence = 16 * 1024 * 1024;
    LanguagePlan plan = pytorch();
    plan.context = 4;
    const Seconds uneven = language_time(longest, plan, device, node_of_eight).compute;
    plan.software = LanguageSoftware::megatron;
    EXPECT_NEAR(uneven / language_time(longest, plan, device, node_of_eight).compute, 1.75, 0.02);
}

// 4 tokens a rank of 4,096 values of 16 bits, each to two experts. On eight ranks of a node seven eighths of both leave
// a rank, at three quarters of a ring's rate. On sixteen of two nodes a row goes to the other node when one of its two
// experts is there, three times in four, by the rank's own adapter; four times a block, and four starts of 33 us.
TEST(LanguageTime, SendsARowOnceToEachNodeOfItsExperts) {
    const DeviceClass device = a100();
    LanguageModel m = large();
    m.sequence = 4;
    m.experts = 16;
    m.top = 2;
    m.expert_ffn = 1024;
    const double rows = 4 * 4096 * 2.0;
    LanguagePlan plan;
    plan.data = plan.experts = 8;
    EXPECT_NEAR(language_time(m, plan, device, node_of_eight).messages.value,
                8 * 4 * (2 * 7.0 / 8 * rows / (0.75 * 230e9) + 33e-6), 1e-12);
    plan.data = plan.experts = 16;
    EXPECT_NEAR(language_time(m, plan, device, node_of_eight).messages.value,
                8 * 4 * (0.75 * rows / (0.75 * 20e9) + 33e-6), 1e-12);
}

// Two nodes of eight: a node's eight adapters of 20 GB/s carry a group's 15/16 of 2 + 2 + 4 bytes a weight; copies
// read and write 14 in memory. With tensor ranks a group has one adapter a node_of_eight, and an eighth of the weights.
TEST(LanguageTime, SendsWeightsByAllAdaptersOfANode) {
    const DeviceClass device = h100();
    LanguagePlan plan = pytorch();
    plan.data = 16;
    plan.zero = 3;
    plan.overlap = false;
    const BlockWeights weights = stage_weights(large(), plan, StageIndex{0});
    const double memory = device.memory_bandwidth.value.value * device.tiles->memory.value;
    const double copied = 14 * weights.dense / memory;
    EXPECT_NEAR(language_time(large(), plan, device, node_of_eight).gradients.value,
                8 * weights.dense * 15 / 16 / 160e9 + copied, 1e-9);
    plan.data = 2;
    plan.tensor = 8;
    const BlockWeights share = stage_weights(large(), plan, StageIndex{0});
    EXPECT_NEAR(language_time(large(), plan, device, node_of_eight).gradients.value,
                8 * share.dense / 2 / 20e9 + 14 * share.dense / memory, 1e-9);
}

// A board's shares, and the slowest of eight cards where they are of one: 1.43 of a spread of 5 % over 2.85.
TEST(LanguageTime, IsOfTheBoard) {
    const DeviceClass device = h100();
    LanguagePlan plan;
    plan.data = 8;
    LanguageNode slower = node_of_eight;
    const LanguageTime plain = language_time(large(), plan, device, node_of_eight);
    slower.board.cards = 1;
    EXPECT_NEAR(language_time(large(), plan, device, slower).compute / plain.compute, 1 + 1.43 * 0.05 / 2.85, 1e-3);
    slower.board = {};
    slower.board.products = device.tiles->large_tile.value / 2;
    EXPECT_GT(language_time(large(), plan, device, slower).compute, 1.5 * plain.compute);
    EXPECT_LT(language_time(large(), plan, device, slower).compute, 2 * plain.compute);
    slower.board = {};
    slower.board.issue = Seconds{0.01};
    EXPECT_NEAR(language_time(large(), plan, device, slower).compute.value, 8 * 3 * 24 * 0.01, 0.1) << "the host's";
}

TEST(LanguageTime, SaysWhatADeviceLacks) {
    DeviceClass device = a100();
    device.peak.erase(DataType::bf16);
    EXPECT_THROW(language_time(large(), {}, device, node_of_eight), InputError);
}

}  // namespace
}  // namespace rehearse::predict
