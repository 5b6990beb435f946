// SPDX-License-Identifier: Apache-2.0
// A pipeline as its papers draw it: a row a stage, a box a pass of a micro-batch, its number inside, time to the right.
//   stage 0 |0|1|  |0 |1 |     forward boxes, the bubble, backward boxes
//   stage 1   |0|1|0 |1 |
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "picture/activity.hpp"
#include "picture/chart.hpp"

namespace rehearse::picture {

struct PipelineBox {
    std::size_t lane = 0;
    double start = 0, end = 0;  // seconds, or units of time where the drawing has no clock
    Activity activity = Activity::forward;
    int micro_batch = -1;  // -1: without a number
    int chunk = 0;         // every second one is paler
    std::string title = {};
    std::optional<double> busy = {};  // of its time, what its steps take; absent: all of it
};

struct PipelineDrawing {
    std::string title, subtitle;
    std::vector<std::string> lanes;  // "stage 0"
    std::vector<PipelineBox> boxes;  // compute in full height, communication as a strip below it
    bool clock = true;               // false: the axis counts units of time, not seconds
};

/// Each stage's passes of one iteration, from its start on; steps of one pass of a micro-batch that follow each other
/// are one box, which ends where the lane waits longer than a pass does inside. A lane is a rank that has events. Where
/// ranks trade with parameter servers, the iteration is the first rank's, and of the others is drawn what they do in
/// that time.
/// Without a number, the iteration whose length is the median (core/iterations.hpp). InputError when the timeline has
/// no events in that iteration.
PipelineDrawing pipeline_of(const Timeline& timeline, std::optional<int> iteration = {});

/// From the first start to the last end, the share of all lanes' time in which a lane does not compute. 0 without
/// boxes.
double idle_share(const PipelineDrawing& drawing);
/// The same of one lane.
double idle_share(const PipelineDrawing& drawing, std::size_t lane);

/// From the first start to the last end.
Range time_of(const PipelineDrawing& drawing);

/// How high it is drawn.
double height_of(const PipelineDrawing& drawing);
Picture pipeline_picture(const PipelineDrawing& drawing, double width = 1200, Theme theme = Theme::light);

/// Into a part of a picture, with `span` as its time axis: two on one span can be compared.
void draw(Picture& picture, Box box, const PipelineDrawing& drawing, Range span, Theme theme);
/// Several below each other on one time axis.
Picture pipelines_picture(const std::vector<PipelineDrawing>& drawings, double width = 1200,
                          Theme theme = Theme::light);

}  // namespace rehearse::picture
