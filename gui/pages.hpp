// SPDX-License-Identifier: Apache-2.0
// Predictions, comparisons and benchmarks as pictures. No Qt here.
#pragma once

#include "gui/document.hpp"
#include "picture/pipeline.hpp"
#include "picture/scaling.hpp"
#include "picture/stacks.hpp"
#include "trace/compare.hpp"

namespace rehearse::gui {

/// Cards and where the time goes, point by point. A card's title begins with the screen that shows its evidence, as
/// "timeline: ...". `point`: which of the points the cards are of.
picture::Picture overview_picture(const Prediction& prediction, std::size_t point, picture::Size size,
                                  picture::Theme theme);
/// The same of a timeline alone.
picture::Picture overview_picture(const Timeline& timeline, picture::Size size, picture::Theme theme);

picture::ScalingCurve curve_of(const Prediction& prediction);
/// Step time against devices against memory: a dot a point, its area the memory; those that none beats are joined.
picture::Picture pareto_picture(const std::vector<std::shared_ptr<const Prediction>>& predictions, picture::Size size,
                                picture::Theme theme);

/// What a device holds, a bar a rank class, against its capacity.
picture::Picture memory_picture(const std::vector<MemoryPart>& parts, double capacity_bytes, const std::string& title,
                                double width, picture::Theme theme);
/// Counters of memory over time. InputError when the timeline has none.
picture::Picture memory_over_time(const picture::Lanes& lanes, picture::Size size, picture::Theme theme);

/// From the measured to the predicted step by passes.
picture::Waterfall waterfall_of(const trace::Comparison& comparison);

/// Rate against problems, a series an implementation.
picture::Picture kernels_picture(const Benchmarks& benchmarks, picture::Size size, picture::Theme theme);

/// Stages against units of time: a forward takes 1, a backward 2, a chunk its share. InputError as the strategy says.
picture::PipelineDrawing planned_pipeline(const std::string& strategy, int stages, int micro_batches, int chunks);

}  // namespace rehearse::gui
