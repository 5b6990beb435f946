// SPDX-License-Identifier: Apache-2.0
// Kernels of blocks with experts, by what was measured of them one by one and by bytes counted by hand.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "predict/language_block.hpp"
#include "prices/tile_model.hpp"
#include "tests/predict/language_example.hpp"

namespace rehearse::predict {
namespace {

DeviceClass b200() {
    return models::parse_machine(
               "name = \"m\"\n[[device]]\nname = \"gpu\"\nlike = \"b200-sxm\"\n[[node]]\nname = \"n\"\ndevices = [{ "
               "class "
               "= \"gpu\", name = \"gpu\" }]\n",
               "m.toml")
        .classes.at(0);
}

double bandwidth(const DeviceClass& device) { return device.memory_bandwidth.value.value * device.tiles->memory.value; }

// Eight blocks of 16 experts, two a row, of 4,096 tokens.
LanguageModel mixture() {
    LanguageModel m = large();
    m.experts = 16;
    m.top = 2;
    m.expert_ffn = 1024;
    return m;
}

Passes of_block(const LanguageModel& m, const LanguagePlan& plan, const LanguageBoard& board = {}) {
    const DeviceClass device = b200();
    return LanguageBlock{m, plan, device, board}.block(0);
}

// Shares of 2,250 TFLOP/s of grouped products that SimuMax measured on its B200 (github MooreThreads/SimuMax
// configs/system/b200_bf16_ceperm.json, group_matmul): experts, rows, columns, depth; forward, gradient of rows, of
// weights. Sums of 16 bits but in the last two lines. The tiles' share is from the same machine, of large dense
// products; how little of the weights' way through memory is hidden is what is held here. Shares of one shape's passes
// scatter by a fifth themselves: all three together are met to a fifth, and all shapes to 6 % in the mean.
struct Grouped {
    double experts, rows, columns, depth, forward, rows_gradient, weights_gradient;
    bool half;
};
constexpr std::array grouped{Grouped{256, 128, 4096, 7168, 0.204, 0.225, 0.142, true},
                             Grouped{256, 128, 7168, 2048, 0.183, 0.148, 0.141, true},
                             Grouped{128, 256, 4096, 7168, 0.274, 0.329, 0.219, true},
                             Grouped{128, 256, 7168, 2048, 0.309, 0.227, 0.218, true},
                             Grouped{64, 512, 4096, 7168, 0.363, 0.399, 0.289, true},
                             Grouped{64, 512, 7168, 2048, 0.393, 0.296, 0.284, true},
                             Grouped{32, 1024, 4096, 7168, 0.458, 0.434, 0.347, true},
                             Grouped{32, 1024, 7168, 2048, 0.402, 0.457, 0.295, true},
                             Grouped{32, 1024, 4096, 7168, 0.457, 0.435, 0.289, false},
                             Grouped{32, 1024, 7168, 2048, 0.384, 0.430, 0.274, false}};

TEST(LanguageKernels, OfExpertsTakeWhatTheyTookOneByOne) {
    const DeviceClass device = b200();
    const LanguageModel m = mixture();
    const LanguageBoard board;
    double sum = 0;
    for (const Grouped& each : grouped) {
        LanguagePlan plan;
        plan.half_sums = each.half;
        const LanguageBlock block{m, plan, device, board};
        const Passes passes = block.expert_products(each.rows, each.columns, each.depth, each.experts, DataType::bf16);
        const double ideal = 2 * each.experts * each.rows * each.columns * each.depth / 2250e12;
        const double measured = ideal * (1 / each.forward + 1 / each.rows_gradient + 1 / each.weights_gradient);
        const double error = passes.both().value / measured - 1;
        EXPECT_LT(std::abs(error), 0.2) << each.rows << " rows to " << each.columns;
        sum += error;
    }
    EXPECT_LT(std::abs(sum / grouped.size()), 0.06);
}

// A fused kernel hides what it reads. 2,048 rows: 256 tiles of 256 x 128 an expert, 32 of them in 56 waves; apart they
// take their 7,168 values of k and the weights' way, fused 132 values more.
TEST(LanguageKernels, OfFusedExpertsHideTheirWeights) {
    const DeviceClass device = b200();
    LanguagePlan plan;
    const auto forward = [&] {
        return LanguageBlock{mixture(), plan, device, {}}.expert_products(2048, 4096, 7168, 32, DataType::bf16).forward;
    };
    const double wave = 2 * 256 * 128.0 / (2250e12 * 0.5 / 148);
    EXPECT_NEAR(forward().value, 56 * wave * 7168 + 2 * 32.0 * 4096 * 7168 / bandwidth(device), 1e-9);
    plan.fused_experts = true;
    EXPECT_NEAR(forward().value, 56 * wave * (7168 + 132), 1e-9);
    LanguageModel m = mixture();
    m.biases = true;
    EXPECT_GT(LanguageBlock(m, plan, device, {}).expert_products(2048, 4096, 7168, 32, DataType::bf16).forward,
              forward())
        << "none with biases";
}

// 8,192 rows of 4,096 values on eight ranks: to each expert 6 + 2/2 passes each way, once to each device 2 + 2 x 1.875
// / 2 of them; 8 bits pad and cut beside the former.
TEST(LanguageKernels, PassOverRowsAsTheirDispatcherDoes) {
    const double rows = 8192 * 4096 * 2.0 / bandwidth(b200());
    LanguagePlan plan;
    plan.graphs = HostGraphs::step;
    plan.data = plan.experts = 8;
    plan.expert_rows = ExpertRows::each;
    const Passes each = of_block(mixture(), plan);
    plan.expert_rows = ExpertRows::once;
    const Passes once = of_block(mixture(), plan);
    EXPECT_NEAR((each.forward - once.forward).value, (7 - 3.875) * rows, 1e-9);
    EXPECT_NEAR((each.backward - once.backward).value, (7 - 3.875) * rows, 1e-9);
    plan.type = DataType::fp8;
    const Passes once_8bit = of_block(mixture(), plan);
    plan.expert_rows = ExpertRows::each;
    EXPECT_NEAR((of_block(mixture(), plan).forward - once_8bit.forward).value, (7 + 4 - 3.875) * rows, 1e-9);
}

// Biases: 28 and 40 bytes a value where probabilities are f32, 12 and 16 where not; a clamped gate of 1,024 values 16
// and 20 a value, in Megatron only.
TEST(LanguageKernels, PassOverRowsForBiasesAndClamps) {
    const double value = 8192 * 4096 / bandwidth(b200()), gate = 8192 * 1024 / bandwidth(b200());
    LanguagePlan plan;
    plan.graphs = HostGraphs::step;
    plan.data = plan.experts = 8;
    const auto more = [&](auto set) {
        LanguageModel m = mixture();
        const Passes without = of_block(m, plan);
        set(m);
        const Passes with = of_block(m, plan);
        return Passes{with.forward - without.forward, with.backward - without.backward};
    };
    const auto biases = [](LanguageModel& m) { m.biases = true; };
    const auto clamped = [](LanguageModel& m) { m.clamped = true; };
    plan.expert_rows = ExpertRows::each;
    EXPECT_NEAR(more(biases).forward.value, 12 * value, 1e-9);
    EXPECT_NEAR(more(biases).backward.value, 16 * value, 1e-9);
    plan.expert_rows = ExpertRows::once;
    EXPECT_NEAR(more(biases).forward.value, 28 * value, 1e-9);
    EXPECT_NEAR(more(biases).backward.value, 40 * value, 1e-9);
    EXPECT_NEAR(more(clamped).forward.value, 16 * gate, 1e-9);
    EXPECT_NEAR(more(clamped).backward.value, 20 * gate, 1e-9);
    plan.software = LanguageSoftware::pytorch;
    EXPECT_EQ(more(clamped).forward.value, 0);
    EXPECT_NEAR(more(biases).forward.value, 28 * value + 8 * 2 * gate, 1e-9) << "of both products";
    EXPECT_NEAR(more(biases).backward.value, 40 * value + 6 * 2 * gate, 1e-9);
}

// Queries and keys ten times more each way where their cosines are scaled, in Megatron only; of a block that is
// computed again once more.
TEST(LanguageKernels, PassOverQueriesAndKeysForScaledRotations) {
    LanguageModel m = large();
    const double tokens = static_cast<double>(m.sequence);
    const double values = tokens * static_cast<double>((m.heads + m.key_heads) * m.head_size);
    LanguagePlan plan;
    plan.graphs = HostGraphs::step;
    const auto more = [&] {
        LanguageModel scaled = m;
        scaled.scaled_rotation = true;
        const Passes with = of_block(scaled, plan), without = of_block(m, plan);
        return Passes{with.forward - without.forward, with.backward - without.backward};
    };
    const double once = 10 * 2 * values / bandwidth(b200());
    EXPECT_NEAR(more().forward.value, once, 1e-9);
    EXPECT_NEAR(more().backward.value, once, 1e-9);
    plan.tensor = 2;
    EXPECT_NEAR(more().forward.value, once / 2, 1e-9) << "a rank's own heads";
    plan.recompute = Recomputation::full;
    EXPECT_NEAR(more().backward.value, once, 1e-9);
    plan.software = LanguageSoftware::pytorch;
    EXPECT_EQ(more().forward.value, 0);
}

// Every other block sees 128 keys and half a tile instead of 2,048 in the mean.
TEST(LanguageKernels, SeeAWindowInEveryOtherBlock) {
    LanguageModel m = large();
    const DeviceClass device = b200();
    LanguagePlan plan;
    plan.graphs = HostGraphs::step;
    const Seconds all = LanguageBlock{m, plan, device, {}}.block(0).forward;
    m.window = 128;
    const LanguageBoard board;
    const LanguageBlock block{m, plan, device, board};
    EXPECT_EQ(block.block(1).forward, all);
    EXPECT_NEAR((all - block.block(0).forward).value,
                4096 * 32.0 * (2048 - 192) * 2 * 256 / (2250e12 * LanguageBoard{}.library.forward), 1e-9);
}

// Of 1 ps a score at 128 values 0.2 are its exponential: half as many values leave 0.4 and 0.2, 8 bits the same; of
// both, and with exponentials in half their time, 0.2 and 0.1.
TEST(LanguageKernels, DoNotHalveExponentials) {
    LanguageModel m = large();
    LanguageBoard board;
    board.library = {512 / 2250e12 / 1e-12, 0.4};
    board.exponentials = board.measured_exponentials = 5e12;
    LanguagePlan plan;
    plan.graphs = HostGraphs::step;
    const double scores = 4096 * 32.0 * 2048;
    const DeviceClass device = b200();
    const auto forward = [&] { return LanguageBlock{m, plan, device, board}.block(0).forward.value; };
    const double all = forward();
    plan.attention_8bit = true;
    EXPECT_NEAR(all - forward(), scores * 0.4e-12, 1e-9);
    const double in_8_bits = forward();
    board.exponentials = 10e12;
    EXPECT_NEAR(in_8_bits - forward(), scores * 0.1e-12, 1e-9);
    plan.attention_8bit = false;
    board.exponentials = 5e12;
    const LanguageModel wide = m;
    m.head_size = 64;
    m.heads = 2 * wide.heads;
    m.key_heads = 2 * wide.key_heads;
    EXPECT_NEAR(forward() - all, scores * 0.2e-12, 1e-9) << "twice as many heads of half the values";
}

// 8 blocks on four stages of two chunks, with one for one token more: seven parts are full, the last has what is left.
TEST(LanguageKernels, LeaveTheLastStageItsExtraToken) {
    LanguageModel m = large();
    m.layers = 15;
    LanguagePlan plan;
    plan.pipe = 4;
    plan.chunks = 2;
    EXPECT_EQ(blocks_of(m, plan, StageIndex{3}).count, 3);
    m.extra_tokens = 1;
    EXPECT_EQ(blocks_of(m, plan, StageIndex{0}).count, 4);
    EXPECT_EQ(blocks_of(m, plan, StageIndex{3}).count, 3);
    m.layers = 13;
    EXPECT_EQ(blocks_of(m, plan, StageIndex{2}).first, 8);
    EXPECT_EQ(blocks_of(m, plan, StageIndex{2}).count, 3);
    EXPECT_EQ(blocks_of(m, plan, StageIndex{3}).count, 2);
    const BlockWeights block = weights_of(m, plan, 0);
    LanguageModel without = m;
    without.extra_tokens = 0;
    without.layers = 8;  // two on the last stage
    EXPECT_NEAR(stage_weights(m, plan, StageIndex{3}).dense - stage_weights(without, plan, StageIndex{3}).dense,
                block.dense + 2 * 4096.0 * 4096, 1);
}

TEST(LanguageKernels, TakeTimeForAnExtraToken) {
    LanguageModel m = large();
    LanguagePlan plan;
    plan.graphs = HostGraphs::step;
    const DeviceClass device = b200();
    const double without = language_time(m, plan, device, node_of_eight).compute.value;
    m.extra_tokens = 1;
    const LanguageBlock block{m, plan, device, node_of_eight.board};
    EXPECT_NEAR(language_time(m, plan, device, node_of_eight).compute.value - without,
                (block.block(0).both() + block.joined_rows().both() + block.scores().both()).value, 1e-9);
}

}  // namespace
}  // namespace rehearse::predict
