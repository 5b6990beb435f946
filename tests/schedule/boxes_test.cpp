// SPDX-License-Identifier: Apache-2.0
#include "schedule/boxes.hpp"

#include <gtest/gtest.h>

#include "schedule/draw.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

/// `stages` times as many equal layers as a stage holds chunks.
Schedule pipeline(const std::string& options, int stages, int chunks = 1) {
    return schedule_of(tower(stages * chunks), "pipe=" + std::to_string(stages) + ":" + options, stages, 48);
}

std::string picture(const Schedule& schedule, const Ticks& ticks = {}) { return draw(boxes(schedule, ticks)); }

// Huang et al. 2019, figure 2c, with backwards in the order of the forwards.
TEST(Boxes, GPipeOfThreeStagesDrawnByHand) {
    EXPECT_EQ(picture(pipeline("schedule=gpipe:microbatches=4", 3)),
              "stage0 F0 F1 F2 F3 .  .  .  .  .  .  B0--- B1--- B2--- B3---\n"
              "stage1 .  F0 F1 F2 F3 .  .  .  B0--- B1--- B2--- B3--- .  .\n"
              "stage2 .  .  F0 F1 F2 F3 B0--- B1--- B2--- B3--- .  .  .  .\n");
}

// Narayanan et al. 2021, figure 3, of two stages.
TEST(Boxes, OneFOneBOfTwoStagesDrawnByHand) {
    EXPECT_EQ(picture(pipeline("microbatches=4", 2)),
              "stage0 F0 F1 .  .  B0--- F2 B1--- F3 B2--- .  B3---\n"
              "stage1 .  F0 B0--- F1 B1--- F2 B2--- F3 B3--- .  .\n");
}

TEST(Boxes, OneFOneBOfFourStagesDrawnByHand) {
    EXPECT_EQ(picture(pipeline("microbatches=4", 4), {.backward = 1}),
              "stage0 F0 F1 F2 F3 .  .  .  B0 .  B1 .  B2 .  B3\n"
              "stage1 .  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3 .\n"
              "stage2 .  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .  .\n"
              "stage3 .  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .  .\n");
}

// Narayanan et al. 2021, figure 4, of two stages with two chunks.
TEST(Boxes, InterleavedOfTwoStagesDrawnByHand) {
    EXPECT_EQ(picture(pipeline("schedule=interleaved:microbatches=2", 2, 2), {.backward = 1}),
              "stage0 F0a F1a F0b F1b .   B0b .   B1b B0a B1a\n"
              "stage1 .   F0a F1a F0b B0b F1b B1b B0a B1a .\n");
}

// The last stage has its gradient at once; the first computes again while it waits.
TEST(Boxes, RecomputationIsForwardAgain) {
    EXPECT_EQ(picture(pipeline("microbatches=2:recompute=on:cut=dense0", 2)),
              "stage0 F0 F1 R0 .  .  B0--- R1 .  B1---\n"
              "stage1 .  F0 R0 B0--- F1 R1 B1--- .  .\n");
}

TEST(Boxes, WithoutStagesMicroBatchesFollowEachOther) {
    EXPECT_EQ(picture(schedule_of(two_dense(), "data=2:microbatches=2", 2), {.update = 1}),
              "all F0 B0--- F1 B1--- U\n");
}

// (p - 1) / (m + p - 1) of the time a stage is idle; v chunks make p - 1 ticks of v times shorter boxes of it.
TEST(Boxes, TheBubbleIsTheFormulas) {
    for (const int p : {1, 2, 3, 4}) {
        for (const int m : {4, 12}) {
            for (const char* name : {"gpipe", "1f1b"}) {
                const BoxChart chart =
                    boxes(pipeline("schedule=" + std::string{name} + ":microbatches=" + std::to_string(m), p));
                SCOPED_TRACE(draw(chart));
                EXPECT_EQ(chart.end, 3 * (m + p - 1));
                for (const Lane& lane : chart.lanes) {
                    EXPECT_DOUBLE_EQ(idle_share(chart, lane), (p - 1.0) / (m + p - 1.0));
                }
            }
        }
    }
    const BoxChart chart = boxes(pipeline("schedule=interleaved:chunks=3:microbatches=12", 4, 3));
    for (const Lane& lane : chart.lanes) EXPECT_DOUBLE_EQ(idle_share(chart, lane), 3.0 / (3 * 12 + 3.0));
}

TEST(Boxes, OtherAxesChangeNothing) {
    const std::string alone = picture(pipeline("microbatches=3", 2));
    EXPECT_EQ(picture(schedule_of(tower(2), "data=2,pipe=2:microbatches=3,tensor=2", 8, 48)), alone);
}

}  // namespace
}  // namespace rehearse::schedule
