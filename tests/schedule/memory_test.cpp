// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory.hpp"

#include <gtest/gtest.h>

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

TEST(Memory, RowsEndInTheirSum) {
    const std::vector<MemoryRow> table = rows(memory_use(schedule_of(residual(), "data", 2, 3, Precision::mixed)));
    Bytes sum;
    for (std::size_t i = 0; i + 1 < table.size(); ++i) sum += table[i].bytes;
    EXPECT_EQ(table.back().kind, "total");
    EXPECT_EQ(table.back().bytes, sum);
}

}  // namespace
}  // namespace rehearse::schedule
