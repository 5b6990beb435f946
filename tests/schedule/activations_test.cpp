// SPDX-License-Identifier: Apache-2.0
#include "schedule/activations.hpp"

#include <gtest/gtest.h>

#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

// The layers of two_dense, with 10 samples in f32, as memory_test.cpp draws their steps: input 160 B, a 120, relu 120,
// b 80, loss 40. When the loss goes backward, input, relu and b are held (440 B with the gradient of b). `a` reads the
// input, relu itself and `b` read relu, the loss reads b. At the fullest step of each, beside what layers up to it
// hold: loss 440 - 360, b 480 - 360, relu 520 - 280, a 280 - 160.
TEST(LayerMemory, OfTwoDenseLayersCountedByHand) {
    const Schedule schedule = schedule_of(two_dense(), "data", 1);
    const LayerMemory memory = layer_memory(schedule, schedule.classes[0]);
    EXPECT_EQ(memory.held, (std::vector<double>{160, 0, 120, 80, 0}));
    EXPECT_EQ(memory.taken, (std::vector<double>{0, 160, 0, 120, 80}));
    EXPECT_EQ(memory.left, (std::vector<double>{0, 160, 0, 0, 80})) << "relu reads its own";
    EXPECT_EQ(memory.passing, (std::vector<double>{0, 120, 240, 120, 80}));
    EXPECT_EQ(memory.exchanged, (std::vector<double>(5)));
}

}  // namespace
}  // namespace rehearse::schedule
