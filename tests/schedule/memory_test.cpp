// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory.hpp"

#include <gtest/gtest.h>

#include "models/zoo/transformer.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

// two_dense has 23 parameters. In f32 with 10 samples, outputs: input 160 B, a 120, relu 120, b 80, loss 40.
//   step                 outputs held                gradients held       sum
//   a:forward            input a                                          280
//   relu:forward         input a relu                                     400
//   b:forward            input relu b                                     360   a is not read again: relu keeps relu
//   loss:forward         input relu b loss                                400
//   loss:backward_data   input relu b                b                    440
//   b:backward_weights   input relu                  b                    360
//   b:backward_data      input relu                  b relu               480
//   relu:backward_data   input relu                  relu a               520   the fullest
//   a:backward_weights   input                       a                    280
TEST(Memory, OfTwoDenseLayersCountedByHand) {
    const MemoryUse use = memory_use(schedule_of(two_dense(), "data", 1));
    EXPECT_EQ(use.weights, Bytes{92});
    EXPECT_EQ(use.master_weights, Bytes{0});
    EXPECT_EQ(use.gradients, Bytes{92});
    EXPECT_EQ(use.optimizer, Bytes{92});
    EXPECT_EQ(use.communication, Bytes{0});
    EXPECT_EQ(use.activations, Bytes{280});
    EXPECT_EQ(use.activation_gradients, Bytes{240});
    EXPECT_EQ(total(use), Bytes{796});
    EXPECT_EQ(schedule_of(two_dense(), "data", 1).memory_peak, Bytes{796});
}

// The same with `a` and `relu` in one, which keeps its output for the sign:
//   loss:backward_data   input a b                   b                    440
//   b:backward_data      input a                     b a                  480   the fullest
//   a:backward_weights   input a                     a                    400
// and with GELU, which keeps the slopes, 120 B, from a:forward to a:backward_weights:
//   loss:backward_data   input a b, slopes           b                    560   the fullest
//   b:backward_data      input, slopes               b a                  480
TEST(Memory, OfFusedActivationsCountedByHand) {
    const auto use = [](Nonlinearity kind) {
        Network network = two_dense();
        std::get<MatMul>(network.layers[1].op).activation = kind;
        network.layers.erase(network.layers.begin() + 2);
        for (std::size_t i = 2; i < network.layers.size(); ++i) --network.layers[i].inputs[0];
        return memory_use(schedule_of(network, "data", 1));
    };
    EXPECT_EQ(use(Nonlinearity::relu).activations, Bytes{280});
    EXPECT_EQ(use(Nonlinearity::relu).activation_gradients, Bytes{200});
    EXPECT_EQ(use(Nonlinearity::gelu).activations, Bytes{480});
    EXPECT_EQ(use(Nonlinearity::gelu).activation_gradients, Bytes{80});
}

// One sample: input, c, s, sum and their gradients 72 B each, f and its gradient 12.
//   sum:forward          input c s sum                                    288   s is not read again
//   loss:backward_data   input c sum f               f                    240
//   sum:backward_data    input c                     sum c s              360   the fullest
TEST(Memory, OfAShortcutFusedToBatchNormIsNotKeptForTheBackwardPass) {
    Network n{.name = "fused", .layers = {}};
    const Conv conv{.channels = 2, .height = 3, .width = 3, .filters = 2, .window = {}};
    const int input = add(n, "input", Input{{2, 3, 3}}, {});
    const int c = add(n, "c", conv, {input});
    const int s = add(n, "s", conv, {input});
    const int sum = add(n, "sum", BatchNorm{.channels = 2, .height = 3, .width = 3, .add = true}, {c, s});
    const int flat = add(n, "flatten", Flatten{{2, 3, 3}}, {sum});
    add(n, "loss", SoftmaxLoss{3}, {add(n, "f", MatMul{.m = 1, .n = 3, .k = 18, .bias = false}, {flat})});
    const MemoryUse use = memory_use(schedule_of(n, "data", 1, 1));
    EXPECT_EQ(use.activations, Bytes{144});
    EXPECT_EQ(use.activation_gradients, Bytes{216});
}

TEST(Memory, OfMixedPrecisionHasMasterWeightsAndHalfTheActivations) {
    const MemoryUse use = memory_use(schedule_of(two_dense(), "data:bucket=1B", 2, 10, Precision::mixed));
    EXPECT_EQ(use.weights, Bytes{46});
    EXPECT_EQ(use.master_weights, Bytes{92});
    EXPECT_EQ(use.gradients, Bytes{46});
    EXPECT_EQ(use.optimizer, Bytes{92});
    EXPECT_EQ(use.communication, Bytes{30}) << "a's bucket: 15 elements of 2 bytes";
    EXPECT_EQ(use.activations, Bytes{140});
    EXPECT_EQ(use.activation_gradients, Bytes{120});
}

// One sample of residual in f32: input, bn, c, sum (flatten is a view of it), drop and their gradients 72 B each,
// drop's mask 18, f and its gradient 12, the loss 4.
//   step                 outputs held                gradients held           sum
//   sum:forward          input bn c sum                                       288
//   drop:forward         input bn sum drop mask                               306   c, then sum are not read again
//   loss:backward_data   input bn drop mask f        f                        258
//   f:backward_weights   input bn drop mask          f                        246
//   f:backward_data      input bn mask               f drop                   246
//   drop:backward_data   input bn mask               drop sum                 306
//   sum:backward_data    input bn                    sum bn c                 360   the fullest
//   c:backward_weights   input bn                    bn c                     288
//   c:backward_data      input                       bn c, c's share of bn    288
//   bn:backward_data     input                       bn                       144
TEST(Memory, OfAResidualBlockCountsBothGradientsOfTheFork) {
    const MemoryUse use = memory_use(schedule_of(residual(), "data", 1, 1));
    EXPECT_EQ(use.weights, Bytes{(4 + 36 + 54) * 4 + 4 * 4}) << "with the running mean and variance";
    EXPECT_EQ(use.activations, Bytes{144});
    EXPECT_EQ(use.activation_gradients, Bytes{216});
}

// A dense layer of 8, dropout, a dense layer of 1: input, a and drop 32 B each, drop's mask 8, b and the loss 4.
// drop:forward holds input a drop mask, 104, and drop:backward_data input mask and the gradients of drop and a, as
// much.
TEST(Memory, OfDropoutCountsItsMask) {
    Network n{.name = "masked", .layers = {}};
    const int a = add(n, "a", MatMul{.m = 1, .n = 8, .k = 8}, {add(n, "input", Input{{8}}, {})});
    const int drop = add(n, "drop", Dropout{{8}, 0.5}, {a});
    add(n, "loss", SoftmaxLoss{1}, {add(n, "b", MatMul{.m = 1, .n = 1, .k = 8}, {drop})});
    const MemoryUse use = memory_use(schedule_of(n, "data", 1, 1));
    EXPECT_EQ(use.activations + use.activation_gradients, Bytes{104});
}

// input and c 64 B each; two pools of c, their sum, and the gradients of these 4 B each. The fullest step is
// p1:backward_data, which adds its own 64 B to the 64 B that p2 made of the gradient of c, and holds its gradient, 4 B.
// Average pools need nothing kept but input; a max pool needs c and its own output again.
TEST(Memory, OfPoolsOverAForkHoldsBothGradientsAndWhatTheKindNeeds) {
    const auto forked = [](PoolKind kind) {
        Network n{.name = "forked", .layers = {}};
        const int input = add(n, "input", Input{{1, 4, 4}}, {});
        const int c = add(n, "c", Conv{.channels = 1, .height = 4, .width = 4, .filters = 1, .window = {}}, {input});
        const Pool pool{kind, 1, 4, 4, {.kernel_h = 4, .kernel_w = 4}};
        const int p1 = add(n, "p1", pool, {c});
        const int sum = add(n, "sum", Add{{1, 1, 1}, 2}, {p1, add(n, "p2", pool, {c})});
        add(n, "loss", SoftmaxLoss{1}, {add(n, "flatten", Flatten{{1, 1, 1}}, {sum})});
        return memory_use(schedule_of(n, "data", 1, 1));
    };
    EXPECT_EQ(forked(PoolKind::average).activations, Bytes{64});
    EXPECT_EQ(forked(PoolKind::average).activation_gradients, Bytes{132});
    EXPECT_EQ(forked(PoolKind::max).activations, Bytes{132});
    EXPECT_EQ(forked(PoolKind::max).activation_gradients, Bytes{132});
}

// Every tensor is 32 B, the loss 4. c is read by a dense layer f through a flatten, and by a ReLU; both are added.
//   sum:forward          input c f relu sum                                   160
//   sum:backward_data    input c relu               sum f relu                192   the fullest
// If flattening copied, sum:forward would hold input, flattened c, f, relu, flattened relu and sum: 192 before that.
TEST(Memory, OfAFlattenIsThatOfItsInput) {
    Network n{.name = "views", .layers = {}};
    const int input = add(n, "input", Input{{1, 2, 4}}, {});
    const int c = add(n, "c", Conv{.channels = 1, .height = 2, .width = 4, .filters = 1, .window = {}}, {input});
    const int f = add(n, "f", MatMul{.m = 1, .n = 8, .k = 8}, {add(n, "flat_c", Flatten{{1, 2, 4}}, {c})});
    const int relu = add(n, "relu", Activation{Nonlinearity::relu, {1, 2, 4}}, {c});
    const int flat = add(n, "flat_relu", Flatten{{1, 2, 4}}, {relu});
    add(n, "loss", SoftmaxLoss{8}, {add(n, "sum", Add{{8}, 2}, {f, flat})});
    const MemoryUse use = memory_use(schedule_of(n, "data", 1, 1));
    EXPECT_EQ(use.activations, Bytes{96});
    EXPECT_EQ(use.activation_gradients, Bytes{96});
}

TEST(Memory, OfOutputsGrowsWithTheBatchAndNothingElseDoes) {
    for (const Network& network : {two_dense(), residual(), tower(6)}) {
        SCOPED_TRACE(network.name);
        const MemoryUse one = memory_use(schedule_of(network, "data", 6, 1));
        const MemoryUse seven = memory_use(schedule_of(network, "data", 6, 7));
        EXPECT_EQ(seven.activations, 7 * one.activations);
        EXPECT_EQ(seven.activation_gradients, 7 * one.activation_gradients);
        EXPECT_EQ(seven.weights, one.weights);
        EXPECT_EQ(seven.communication, one.communication);
    }
}

// Four layers of 72 parameters, a bucket each, on two ranks: 36 of each are kept, and two buckets held at a time.
TEST(Memory, OfZeroThreeIsPiecesAndTwoGatheredBuckets) {
    const auto use = [](std::string_view plan) { return memory_use(schedule_of(tower(4), plan, 2)); };
    const MemoryUse sharded = use("data:first=1B:bucket=1B:zero=3");
    EXPECT_EQ(sharded.weights, Bytes{(4 * 36 + 2 * 72) * 4});
    EXPECT_EQ(sharded.gradients, Bytes{4 * 36 * 4});
    EXPECT_EQ(sharded.optimizer, Bytes{4 * 36 * 4});
    EXPECT_EQ(use("data:zero=2:microbatches=2").gradients, Bytes{4 * 72 * 4}) << "summed once, so whole until then";
    EXPECT_EQ(use("data:zero=3:microbatches=2").gradients, Bytes{4 * 36 * 4});
}

// A piece of a bucket is enough only where its gradients are scattered before the next ones are made. One rank's piece
// of four buckets of 72 elements is half of each.
TEST(Memory, OfZeroTwoIsWholeGradientsWhereTheyAreScatteredAfterTheBackwardPass) {
    const auto gradients = [](std::string_view plan) { return memory_use(schedule_of(tower(4), plan, 2)).gradients; };
    EXPECT_EQ(gradients("data:first=1B:bucket=1B:zero=2"), Bytes{4 * 36 * 4});
    EXPECT_EQ(gradients("data:first=1B:bucket=1B:zero=2:overlap=off"), Bytes{4 * 72 * 4});
    EXPECT_EQ(gradients("data:first=1B:bucket=1B:zero=1:overlap=off"), Bytes{4 * 72 * 4});
}

// Two layers of 72 parameters a stage. The first stage's two copies have two of the four micro-batches each; four
// ranks, of both copies along data, share its gradients, and two those of the second stage.
TEST(Memory, OfZeroThreeIsPiecesOnCopiesOfAStage) {
    const Schedule schedule =
        schedule_of(tower(4), "pipe=3:copies=2+1:microbatches=4:cut=3,data=2:first=1B:bucket=1B:zero=3", 6, 8);
    ASSERT_EQ(schedule.classes.size(), 3U);
    EXPECT_EQ(memory_use(schedule, schedule.classes[0]).gradients, Bytes{2 * 72 / 4 * 4});
    EXPECT_EQ(memory_use(schedule, schedule.classes[1]).gradients, Bytes{2 * 72 / 4 * 4});
    EXPECT_EQ(memory_use(schedule, schedule.classes[2]).gradients, Bytes{2 * 72 / 2 * 4});
}

// two_dense has 23 parameters, residual() 94 and running statistics of 4 more numbers. Each learner has a program with
// all that one rank alone has. Beside these lie the average, each learner's difference from it, the sum of these, and
// with momentum where the average was.
TEST(Memory, OfLearnersIsThatOfAsManyPrograms) {
    for (const Network& network : {two_dense(), residual()}) {
        SCOPED_TRACE(network.name);
        const MemoryUse one = memory_use(schedule_of(network, "data", 1, 1));
        const MemoryUse all = memory_use(schedule_of(network, "data:learners=4", 1, 4));
        const Bytes whole = static_cast<double>(parameters(network)) * size_of(DataType::f32);
        EXPECT_EQ(all.weights, 4 * one.weights);
        EXPECT_EQ(all.gradients, 4 * one.gradients);
        EXPECT_EQ(all.optimizer, 4 * one.optimizer + 6 * whole);
    }
}

// Of the average nobody keeps moments or a second copy: it is a model's f32 numbers, its difference from the rank's
// own, and the sum of these; one more with momentum.
TEST(Memory, OfElasticAveragingCountsTheAverageOnce) {
    const auto use = [](std::string_view plan, Precision precision, Optimizer optimizer) {
        return memory_use(
            make_schedule(two_dense(), sixes(), parse_plan(plan),
                          {.devices = 2, .batch_per_device = 2, .precision = precision, .optimizer = optimizer}));
    };
    for (const Precision precision : {Precision::fp32, Precision::mixed}) {
        for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam}) {
            SCOPED_TRACE(std::string{to_string(precision)} + " " + std::string{to_string(optimizer)});
            const MemoryUse own = use("data=2:local=2", precision, optimizer);
            const MemoryUse average = use("data=2:local=2:elastic=0.1", precision, optimizer);
            const MemoryUse moving = use("data=2:local=2:elastic=0.1:average_momentum=0.5", precision, optimizer);
            EXPECT_EQ(average.master_weights, own.master_weights);
            EXPECT_EQ(average.weights, own.weights);
            EXPECT_EQ(average.gradients, own.gradients);
            EXPECT_EQ(average.optimizer, own.optimizer + Bytes{3 * 23.0 * 4});
            EXPECT_EQ(moving.optimizer, own.optimizer + Bytes{4 * 23.0 * 4});
        }
    }
}

// Two layers of 72 parameters a stage; the first stage has two micro-batches in flight, each with its weights.
TEST(Memory, OfAnAsynchronousPipelineCountsTheVersionsOfWeights) {
    const Schedule schedule = schedule_of(tower(4), "pipe=2:schedule=pipedream:microbatches=5", 2);
    EXPECT_EQ(memory_use(schedule, schedule.classes[0]).weights, Bytes{2 * 2 * 72 * 4});
    EXPECT_EQ(memory_use(schedule, schedule.classes[1]).weights, Bytes{2 * 72 * 4});
}

// 23 parameters in one bucket, momentum: a server has 92 B of weights, as much of momentum, and of each worker a buffer
// of 92 B; ranks keep weights and gradients. One that follows another has its weights.
TEST(Memory, OfServersIsTheirsOrTheRanksTheyAreBeside) {
    const auto uses = [](std::string_view plan, std::int64_t devices) {
        return memory_uses(schedule_of(two_dense(), plan, devices));
    };
    const std::vector<NamedUse> apart = uses("server=1,data", 4), beside = uses("server=1:place=beside,data", 3);
    ASSERT_EQ(apart.size(), 2U);
    ASSERT_EQ(beside.size(), 1U);
    EXPECT_EQ(apart[0].use.optimizer, Bytes{0});
    EXPECT_EQ(apart[1].name, "server");
    EXPECT_EQ(apart[1].use.weights, Bytes{92});
    EXPECT_EQ(apart[1].use.optimizer, Bytes{92});
    EXPECT_EQ(apart[1].use.communication, Bytes{3 * 92});
    EXPECT_EQ(total(beside[0].use), total(apart[0].use) + total(apart[1].use));
    // Groups sum their gradients, and one rank of each trades.
    EXPECT_EQ(uses("server=1,groups=2,data=2", 5).back().use.communication, Bytes{2 * 92});
    // Stages have weights of their own, 15 and 8, which are on one server.
    EXPECT_EQ(uses("server=1,data=2,pipe=2", 5).back().use.weights, Bytes{92});
    EXPECT_EQ(uses("server=1,data=2,pipe=2", 5).back().use.communication, Bytes{2 * 92});
    const MemoryUse followed = uses("server=2:copies=2,data", 4).back().use;
    EXPECT_EQ(followed.weights, Bytes{92});
    EXPECT_EQ(followed.optimizer, Bytes{92});
}

// Many workers need more room on their server than on a rank.
TEST(Memory, OfServersHasToFit) {
    Machine machine = sixes();
    machine.classes.emplace_back().memory = {Bytes{1000}, "test"};
    const Schedule schedule = schedule_of(two_dense(), "server=1,data", 22, 1);
    EXPECT_EQ(schedule.memory_peak, Bytes{92 + 92 + 21 * 92});
    EXPECT_EQ(tightest(schedule, machine).rank_class, no_class);
    EXPECT_FALSE(tightest(schedule, machine).fits());
    EXPECT_EQ(tightest(schedule_of(two_dense(), "server=1,data", 2), machine).rank_class, 0);
}

TEST(Memory, RowsEndInTheirSum) {
    const std::vector<MemoryRow> table = rows(memory_use(schedule_of(residual(), "data", 2, 3, Precision::mixed)));
    Bytes sum;
    for (std::size_t i = 0; i + 1 < table.size(); ++i) sum += table[i].bytes;
    EXPECT_EQ(table.back().kind, "total");
    EXPECT_EQ(table.back().bytes, sum);
}

// Korthikanti et al. 2022, table 2, in f16, dropout's masks a byte an element: a block of a transformer keeps
// s b h (34 + 5 a s / h) bytes; on t ranks 24 of these and the attention matrices are shared, with sequence parallelism
// all; the term with a is only there where programs keep the matrices, and is not where they are made again. Where all
// is made again, the block's input is kept, of which each rank has its rows with sequence parallelism.
TEST(Memory, OfATransformersBlockIsThatOfThePaper) {
    const std::int64_t s = 16, b = 3, h = 32, a = 8, t = 4;
    const auto block = [&](std::string_view plan, std::int64_t devices) {
        const auto held = [&](std::int64_t layers) {
            const models::Transformer size{"tiny", models::TransformerKind::decoder, layers, h, a, 12, s};
            const Schedule schedule =
                make_schedule(models::transformer(size, s), sixes(), parse_plan(plan),
                              {.devices = devices, .global_batch = b, .precision = Precision::mixed});
            return memory_use(schedule).activations.value;
        };
        return (held(5) - held(4)) / static_cast<double>(s * b * h);
    };
    const double matrices = 5.0 * a * s / h;
    EXPECT_EQ(block("data", 1), 34);
    EXPECT_EQ(block("data:attention=kept", 1), 34 + matrices);
    EXPECT_EQ(block("data:recompute=attention", 1), 34);
    EXPECT_EQ(block("data:recompute=blocks", 1), 2);
    EXPECT_EQ(block("tensor", t), 10 + 24.0 / t);
    EXPECT_EQ(block("tensor:attention=kept", t), 10 + (24 + matrices) / t);
    EXPECT_EQ(block("tensor:recompute=attention", t), 10 + 24.0 / t);
    EXPECT_EQ(block("tensor:recompute=blocks", t), 2);
    EXPECT_EQ(block("tensor:sequence=on", t), 34.0 / t);
    EXPECT_EQ(block("tensor:sequence=on:attention=kept", t), (34 + matrices) / t);
    EXPECT_EQ(block("tensor:sequence=on:recompute=attention", t), 34.0 / t);
    EXPECT_EQ(block("tensor:sequence=on:recompute=blocks", t), 2.0 / t);
}

// One sample, f32: input and a 32 B each, bias is a layer of its own, the loss 4. The gradient of a bias needs nothing.
//   loss:forward            input bias loss                                      68
//   loss:backward_data      input bias              bias                         96
//   bias:backward_data      input                   bias a                       96   a is not read again
TEST(Memory, OfABiasKeepsNothing) {
    Network n{.name = "biased", .layers = {}};
    const int input = add(n, "input", Input{{8}}, {});
    const int a = add(n, "a", MatMul{.m = 1, .n = 8, .k = 8, .bias = false}, {input});
    add(n, "loss", SoftmaxLoss{8}, {add(n, "bias", Bias{{8}, 0}, {a})});
    const MemoryUse use = memory_use(schedule_of(n, "data", 1, 1));
    EXPECT_EQ(use.activations + use.activation_gradients, Bytes{96});
}

// With Adam: what layers read, its gradient, two moments, and the master weight where there is one (docs/training.md);
// in FP8 a dense layer's weights also as operands, as they are and transposed.
TEST(Memory, OfAParameterByPrecision) {
    Network n{.name = "dense", .layers = {}};
    const int a = add(n, "a", MatMul{.m = 1, .n = 32, .k = 16, .bias = false}, {add(n, "input", Input{{16}}, {})});
    add(n, "loss", SoftmaxLoss{32}, {a});
    const auto bytes = [&](Precision precision) {
        const MemoryUse use = memory_use(make_schedule(
            n, sixes(), parse_plan("data"), {.devices = 1, .precision = precision, .optimizer = Optimizer::adam}));
        return (use.weights + use.master_weights + use.gradients + use.optimizer).value / (16 * 32);
    };
    EXPECT_EQ(bytes(Precision::fp32), 4 + 4 + 8);
    EXPECT_EQ(bytes(Precision::tf32), 4 + 4 + 8);
    EXPECT_EQ(bytes(Precision::fp16), 2 + 2 + 4);
    EXPECT_EQ(bytes(Precision::pure_bf16), 2 + 2 + 4);
    EXPECT_EQ(bytes(Precision::mixed), 2 + 2 + 4 + 8);
    EXPECT_EQ(bytes(Precision::mixed_bf16), 2 + 2 + 4 + 8);
    EXPECT_EQ(bytes(Precision::autocast), 2 + 4 + 4 + 8);
    EXPECT_EQ(bytes(Precision::bf16), 2 + 4 + 4 + 8);
    EXPECT_EQ(bytes(Precision::fp8), 2 + 4 + 4 + 8 + 2);
}

// One sample: the input 32 B, a and its gradient 64 B each. In FP8 the product keeps 16 B of its input, and nobody
// reads the input again.
//   loss:backward_data    bf16: input, a, a's gradient; fp8: 16 B, a, a's gradient
TEST(Memory, OfAProductInFp8KeepsItsInputAsItMultipliedIt) {
    Network n{.name = "dense", .layers = {}};
    const int a = add(n, "a", MatMul{.m = 1, .n = 32, .k = 16, .bias = false}, {add(n, "input", Input{{16}}, {})});
    add(n, "loss", SoftmaxLoss{32}, {a});
    const auto held = [&](Precision precision) {
        const MemoryUse use = memory_use(schedule_of(n, "data", 1, 1, precision));
        return use.activations + use.activation_gradients;
    };
    EXPECT_EQ(held(Precision::bf16), Bytes{160});
    EXPECT_EQ(held(Precision::fp8), Bytes{144});
}

TEST(Memory, OfTheOptimizerIsOneOrTwoMoments) {
    const auto optimizer = [](Optimizer which, Precision precision) {
        const Schedule schedule = make_schedule(two_dense(), sixes(), parse_plan("data"),
                                                {.devices = 1, .precision = precision, .optimizer = which});
        return memory_use(schedule).optimizer;
    };
    EXPECT_EQ(optimizer(Optimizer::sgd, Precision::fp32), Bytes{23.0 * 4});
    EXPECT_EQ(optimizer(Optimizer::adam, Precision::fp32), Bytes{2 * 23.0 * 4});
    EXPECT_EQ(optimizer(Optimizer::lamb, Precision::mixed), Bytes{2 * 23.0 * 4}) << "in f32, as the master weights";
}

}  // namespace
}  // namespace rehearse::schedule
