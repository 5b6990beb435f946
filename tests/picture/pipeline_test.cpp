// SPDX-License-Identifier: Apache-2.0
// Boxes where the algebra of the schedule puts them.
#include "picture/pipeline.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "picture/gantt.hpp"
#include "picture/palette.hpp"

namespace rehearse::picture {
namespace {

using namespace literals;

// GPipe on `stages` stages: forwards take 1, backwards 2; stage s starts its micro-batch m at s + m, the last stage
// turns round, and the whole takes (stages - 1 + micro_batches) * 3.
PipelineDrawing gpipe(int stages, int micro_batches) {
    PipelineDrawing drawing{"gpipe", "", {}, {}, false};
    const double turn = stages - 1 + micro_batches;
    for (int s = 0; s < stages; ++s) {
        drawing.lanes.push_back("stage");
        for (int m = 0; m < micro_batches; ++m) {
            const auto lane = static_cast<std::size_t>(s);
            drawing.boxes.push_back({lane, 1.0 * s + m, 1.0 * s + m + 1, Activity::forward, m});
            const double back = turn + 2.0 * (stages - 1 - s) + 2.0 * m;
            drawing.boxes.push_back({lane, back, back + 2, Activity::backward_data, m});
        }
    }
    return drawing;
}

TEST(Pipeline, IdleShareOfGPipeIsTheClosedForm) {
    // (p - 1) / (m + p - 1), Huang et al. 2019.
    EXPECT_DOUBLE_EQ(idle_share(gpipe(4, 8)), 3.0 / 11);
    EXPECT_DOUBLE_EQ(idle_share(gpipe(2, 1)), 1.0 / 2);
    EXPECT_DOUBLE_EQ(idle_share(gpipe(1, 5)), 0);
    EXPECT_DOUBLE_EQ(idle_share(gpipe(4, 8), 2), 3.0 / 11);  // of each stage
    EXPECT_EQ(idle_share(PipelineDrawing{}), 0);
}

std::vector<Rectangle> boxes_of(const Picture& picture, Color color) {
    std::vector<Rectangle> found;
    for (const Mark& mark : picture.marks) {
        const auto* box = std::get_if<Rectangle>(&mark.shape);
        if (box != nullptr && mark.fill == color && box->height > 20) found.push_back(*box);
    }
    return found;
}

TEST(Pipeline, BoxesStandWhereTimeSays) {
    const Picture picture = pipeline_picture(gpipe(2, 2));
    const auto track = boxes_of(picture, idle_color(Theme::light));
    const auto forward = boxes_of(picture, color_of(Activity::forward, Theme::light));
    const auto backward = boxes_of(picture, color_of(Activity::backward_data, Theme::light));
    ASSERT_EQ(track.size(), 2U);
    ASSERT_EQ(forward.size(), 4U);
    ASSERT_EQ(backward.size(), 4U);
    const double unit = track[0].width / 9;  // (2 - 1 + 2) * 3 units of time
    const auto left = [&](int units) { return testing::DoubleNear(track[0].at.x + units * unit, 0.51); };  // gap 1
    EXPECT_THAT(forward[0].at.x, left(0));
    EXPECT_THAT(forward[1].at.x, left(1));
    EXPECT_THAT(forward[2].at.x, left(1));
    EXPECT_THAT(backward[2].at.x, left(3));  // of stage 1, which begins
    EXPECT_THAT(backward[1].at.x, left(7));
    EXPECT_NEAR(backward[1].width, 2 * unit, 1.01);
    EXPECT_EQ(forward[2].at.y, track[1].at.y);
}

TEST(Pipeline, EachBoxHasItsNumber) {
    const Picture picture = pipeline_picture(gpipe(2, 12));
    int numbers = 0;
    for (const Mark& mark : picture.marks) {
        const auto* text = std::get_if<Text>(&mark.shape);
        numbers += text != nullptr && text->text == "11" ? 1 : 0;
    }
    EXPECT_GE(numbers, 4);  // and perhaps a tick of the axis
}

TEST(Pipeline, OfManyMicroBatchesHasNoMoreMarksThanPixelsCanShow) {
    const PipelineDrawing drawing = gpipe(2, 20000);
    EXPECT_LT(pipeline_picture(drawing, 800).marks.size(), 2U * 2 * 800);
}

Event event(std::int64_t rank, std::string pass, int micro_batch, double start, double end,
            Stream stream = Stream::compute) {
    return {.rank = RankIndex{rank},
            .stream = stream,
            .step = "",
            .layer = "",
            .pass = std::move(pass),
            .micro_batch = micro_batch,
            .iteration = 0,
            .start = Seconds{start},
            .end = Seconds{end},
            .bytes = {},
            .flops = {}};
}

TEST(PipelineOf, GathersTheLayersOfAPassIntoOneBox) {
    Timeline timeline{"t", false, 2, {}, {}};
    timeline.events = {event(0, "forward", 0, 0, 1),       event(0, "forward", 0, 1, 2),
                       event(0, "forward", 1, 2, 3),       event(0, "backward_weights", 0, 5, 6),
                       event(0, "backward_data", 0, 6, 7), event(0, "backward_weights", 0, 7, 8),
                       event(0, "update", 0, 8, 9),        event(3, "send", 0, 2, 3, Stream::send_gradients)};
    const PipelineDrawing drawing = pipeline_of(timeline);
    ASSERT_EQ(drawing.boxes.size(), 5U);
    EXPECT_THAT(drawing.lanes, testing::ElementsAre("rank 0", "rank 3"));
    EXPECT_EQ(drawing.boxes[0].end, 2);
    EXPECT_EQ(drawing.boxes[1].micro_batch, 1);
    EXPECT_EQ(drawing.boxes[2].activity, Activity::backward_data);
    EXPECT_EQ(drawing.boxes[2].start, 5);
    EXPECT_EQ(drawing.boxes[2].end, 8);
    EXPECT_EQ(drawing.boxes[3].activity, Activity::update);
    EXPECT_EQ(drawing.boxes[4].activity, Activity::point_to_point);
    EXPECT_EQ(drawing.boxes[4].lane, 1U);
    EXPECT_THROW(pipeline_of(timeline, 1), InputError);
}

// Two workers of a server compute for 1 s of each 2 s; the second began half a step later, so that its steps end half a
// step after the first's. From the first start to the last end of "one" iteration would be 3 s, two thirds idle.
TEST(PipelineOf, WorkersOfAServerAreCutInTimeNotByIteration) {
    Timeline timeline{"t", false, 2, {}, {}};
    for (int i = 0; i < 5; ++i) {
        for (const std::int64_t rank : {0, 1}) {
            const double start = 2 * i + static_cast<double>(rank);
            timeline.events.push_back(event(rank, "forward", 0, start, start + 1));
            timeline.events.back().iteration = i;
            timeline.events.push_back(event(rank, "trade", 0, start + 1, start + 2, Stream::send_gradients));
            timeline.events.back().iteration = i;
        }
    }
    const PipelineDrawing drawing = pipeline_of(timeline);
    EXPECT_EQ(time_of(drawing), (Range{0, 2}));
    EXPECT_DOUBLE_EQ(idle_share(drawing, 0), 0.5);
    EXPECT_DOUBLE_EQ(idle_share(drawing, 1), 0.5);
}

// A lane computes 1 s, waits 3 s for an all-reduce inside the pass, and computes 1 s: two boxes, 3/5 idle. A gap of a
// microsecond between kernels is no box's end, and no computing either.
TEST(PipelineOf, WaitsInsideAPassAreIdle) {
    Timeline timeline{"t", false, 1, {}, {}};
    timeline.events = {event(0, "forward", 0, 0, 1), event(0, "forward", 0, 4, 4.5),
                       event(0, "forward", 0, 4.500001, 5)};
    const PipelineDrawing drawing = pipeline_of(timeline);
    ASSERT_EQ(drawing.boxes.size(), 2U);
    EXPECT_EQ(drawing.boxes[0].end, 1);
    EXPECT_EQ(drawing.boxes[1].start, 4);
    EXPECT_NEAR(*drawing.boxes[1].busy, 1 - 1e-6, 1e-12);
    EXPECT_NEAR(idle_share(drawing), 3.000001 / 5, 1e-12);
    EXPECT_THAT(drawing.boxes[0].title, testing::EndsWith("forward of micro-batch 0: 1 s"));
    EXPECT_THAT(drawing.boxes[1].title, testing::HasSubstr(" in "));
}

// Steps of one pass that lie over each other keep a lane as busy as one of them.
TEST(PipelineOf, OverlappingStepsCountOnce) {
    Timeline timeline{"t", false, 1, {}, {}};
    timeline.events = {event(0, "forward", 0, 0, 2), event(0, "forward", 0, 1, 3), event(0, "forward", 1, 9, 10)};
    EXPECT_NEAR(idle_share(pipeline_of(timeline)), 6.0 / 10, 1e-12);
}

// A warm-up of 9 s, then steps of 3, 1 and 2 s: the one of 2 s is drawn, from 0 on.
TEST(PipelineOf, DrawsTheIterationInTheMiddle) {
    Timeline timeline{"t", true, 1, {}, {}};
    double now = 0;
    for (const double length : {9, 3, 1, 2}) {
        timeline.events.push_back(event(0, "forward", 0, now, now + length));
        timeline.events.back().iteration = static_cast<int>(timeline.events.size()) - 1;
        now += length;
    }
    const PipelineDrawing drawing = pipeline_of(timeline);
    ASSERT_EQ(drawing.boxes.size(), 1U);
    EXPECT_EQ(drawing.boxes[0].start, 0);
    EXPECT_EQ(drawing.boxes[0].end, 2);
    EXPECT_EQ(pipeline_of(timeline, 0).boxes[0].end, 9);
}

TEST(PipelineOf, KeepsTheHalvesOfTheBackwardPassWhereTheyAreApart) {
    Timeline timeline{"t", false, 1, {}, {}};
    timeline.events = {event(0, "backward_data", 0, 0, 1), event(0, "backward_data", 0, 1, 2),
                       event(0, "backward_weights", 0, 4, 6)};
    const PipelineDrawing drawing = pipeline_of(timeline);
    ASSERT_EQ(drawing.boxes.size(), 2U);
    EXPECT_EQ(drawing.boxes[1].activity, Activity::backward_weights);
}

// Two jobs on three devices: the first has devices 0 and 1 for 4 s, the second device 2 for 1 s of 4 without using it.
TEST(Gantt, BarsStandWhereTheirDevicesAndTimesAre) {
    const Gantt gantt{.title = "fifo",
                      .lanes = 3,
                      .kinds = {"vgg16", "resnet50"},
                      .bars = {{0, 2, 0, 4, 0, false, "a", "a: 2 devices"},
                               {2, 1, 0, 1, 1, true, "b", "b restarts"},
                               {2, 1, 1, 4, 1, false, "b", "b: 1 device"}}};
    const Picture picture = gantt_picture({gantt, gantt}, 800);
    std::vector<Rectangle> bars;
    std::vector<Color> colors;
    std::vector<std::string> texts;
    for (const Mark& mark : picture.marks) {
        const auto* box = std::get_if<Rectangle>(&mark.shape);
        if (box != nullptr && !mark.title.empty()) bars.push_back(*box), colors.push_back(*mark.fill);
        if (const auto* text = std::get_if<Text>(&mark.shape)) texts.push_back(text->text);
    }
    ASSERT_EQ(bars.size(), 6U);  // of both drawings
    EXPECT_DOUBLE_EQ(bars[0].width, 4 * bars[1].width);
    EXPECT_DOUBLE_EQ(bars[2].width, 3 * bars[1].width);
    EXPECT_DOUBLE_EQ(bars[0].height, 2 * bars[1].height);
    EXPECT_DOUBLE_EQ(bars[1].at.x, bars[0].at.x);
    EXPECT_DOUBLE_EQ(bars[1].at.y, bars[0].at.y + bars[0].height);
    EXPECT_NEAR(bars[2].at.x, bars[1].at.x + bars[1].width, 1e-9);
    EXPECT_DOUBLE_EQ(bars[3].at.x, bars[0].at.x);  // one axis for both
    EXPECT_GT(bars[3].at.y, bars[1].at.y + bars[1].height);
    EXPECT_EQ(colors[0], series_color(palette(Theme::light), 0));
    EXPECT_EQ(colors[2], series_color(palette(Theme::light), 1));
    EXPECT_NE(colors[1], colors[2]);  // pale
    EXPECT_THAT(texts, testing::IsSupersetOf({"fifo", "vgg16", "resnet50", "device 0", "device 2", "a", "b"}));
    EXPECT_GE(picture.height, bars[5].at.y + bars[5].height);
}

TEST(Gantt, WithoutBarsIsAnEmptyAxis) {
    EXPECT_GT(gantt_picture({Gantt{.title = "none"}}).marks.size(), 3U);
    EXPECT_EQ(gantt_picture({}).height, 0);
}

}  // namespace
}  // namespace rehearse::picture
