// SPDX-License-Identifier: Apache-2.0
// Predictions, comparisons and benchmarks as pictures. No Qt here.
#pragma once

#include "core/machine.hpp"
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
picture::Picture overview_picture(const Timeline& timeline, const Summary& summary, picture::Size size,
                                  picture::Theme theme);

/// "resnet50 on summit, data, mixed", and under noise ", noise 0.1".
std::string name_of(const Prediction& prediction);
/// With a name that no other one of them has: name_of, and where several would be called so the options in which they
/// differ, else their files.
struct NamedPrediction {
    std::shared_ptr<const Prediction> prediction;
    std::string name;
};
/// Those of the documents that are predictions, in their order.
std::vector<NamedPrediction> named(const std::vector<Document>& documents);

picture::ScalingCurve curve_of(const NamedPrediction& named);
/// Of its dot at a point, for the pointer.
std::string front_title(const NamedPrediction& named, const Point& point);
/// Step time against devices against memory: a dot a point, its area the memory; those that none beats are joined.
picture::Picture pareto_picture(const std::vector<NamedPrediction>& predictions, picture::Size size,
                                picture::Theme theme);

/// What a device holds, a bar a rank class, against its capacity.
picture::Picture memory_picture(const std::vector<MemoryPart>& parts, double capacity_bytes, const std::string& title,
                                double width, picture::Theme theme);
/// Counters of memory over time. InputError when the timeline has none.
picture::Picture memory_over_time(const picture::Lanes& lanes, picture::Size size, picture::Theme theme);

/// From the measured to the predicted step by passes.
picture::Waterfall waterfall_of(const trace::Comparison& comparison);

/// How far each pass of each layer is off, a row a layer (those that matter most), the stronger in colour the more of
/// the step it is. A cell's title begins with the step's name and a colon behind a space: "conv1:forward : ...".
picture::Picture differences_picture(const trace::Comparison& comparison, picture::Theme theme);

/// "conv2d:n8" and "cpu/direct" of "conv2d:n8/cpu/direct/real_time"; "" where a name has no such part.
std::string problem_of(const std::string& benchmark);
std::string implementation_of(const std::string& benchmark);

/// Rate against problems, a series an implementation.
picture::Picture kernels_picture(const Benchmarks& benchmarks, picture::Size size, picture::Theme theme);

/// One size of a collective, or of a message ("p2p"), as rehearse bench names it: "allreduce:n4:1024B:f32/comm/ring".
struct CollectiveRun {
    std::string kind, type, algorithm;
    std::int64_t ranks = 0;
    double bytes = 0, seconds = 0, bus_bytes_per_s = 0;
};
std::optional<CollectiveRun> collective_of(const Benchmark& benchmark);
/// Bus bandwidth over sizes, a curve an algorithm, each with its fitted line. InputError without collectives.
picture::Picture collectives_picture(const Benchmarks& benchmarks, picture::Size size, picture::Theme theme);

/// What a problem's fastest implementation took, and what a machine's prices say of it; price 0: they refuse, and
/// `source` says why.
struct Residual {
    std::string problem, implementation;
    double measured_s = 0, price_s = 0, error = 0;
    std::string source, basis{};
};
std::vector<Residual> residuals_of(const Benchmarks& benchmarks, const Machine& machine);
/// InputError when nothing has a price.
picture::Picture residuals_picture(const std::vector<Residual>& residuals, const std::string& machine,
                                   picture::Size size, picture::Theme theme);

/// Stages against units of time: a forward takes 1, a backward 2, a chunk its share. InputError as the strategy says.
picture::PipelineDrawing planned_pipeline(const std::string& strategy, int stages, int micro_batches, int chunks);

}  // namespace rehearse::gui
