// SPDX-License-Identifier: Apache-2.0
// A file that the window can show: what it holds, read from whatever wrote it. No Qt here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "picture/lanes.hpp"
#include "picture/roofline.hpp"

namespace rehearse::gui {

struct Point {
    std::int64_t devices = 0, nodes = 0, global_batch = 0;
    double step_s = 0, step_low_s = 0, step_high_s = 0, samples_per_s = 0, flops_per_s = 0, speedup = 0, efficiency = 0;
    double compute_s = 0, exposed_comm_s = 0, bubble_s = 0, io_wait_s = 0, rest_s = 0;
    double memory_peak_bytes = 0, memory_capacity_bytes = 0;
    bool fits = true;
    std::string mode;
    double training_s = 0, epochs = 0, node_hours = 0, simulation_wall_s = 0;  // 0: not asked for
};

struct Explanation {
    std::string what, basis, source;  // basis: in the words of prices/prices.hpp
    std::int64_t steps = 0;
    double total_s = 0, share = 0, error = 0;
};

struct MemoryPart {
    std::string rank_class, kind;
    double bytes = 0;
};

/// What `rehearse predict --format json` prints.
struct Prediction {
    std::string model, machine, plan, precision;
    std::vector<Point> points;  // by devices
    std::vector<Explanation> explanation;
    std::vector<MemoryPart> memory;  // of the largest point
};

struct Benchmark {
    std::string name;
    double seconds = 0;  // median_s, the median of rehearse bench; of another program real_time, its mean
    double flops_per_s = 0, bytes_per_s = 0, peak_fraction = 0;  // 0: not counted
    std::string error;
};

/// Google Benchmark's JSON.
struct Benchmarks {
    std::string host, date;
    std::vector<picture::Roof> roofs;  // as rehearse bench adds them
    std::vector<Benchmark> rows;
    bool are_medians = false;  // else means, as Google Benchmark's real_time is
};

struct Document {
    std::string path, label;                      // label: the file's name, and of several timelines which
    std::string warning;                          // "cut off: ...": what is shown is not all
    std::shared_ptr<const picture::Lanes> lanes;  // of a timeline
    std::shared_ptr<const Timeline> timeline;     // of a timeline of ours that is not huge
    std::optional<Summary> summary;               // of the same
    std::shared_ptr<const Prediction> prediction;
    std::shared_ptr<const Benchmarks> benchmarks;
};

/// 0 to 1; false cancels.
using Progress = std::function<bool(double)>;

/// All that the file holds: a Perfetto or Chrome timeline of ours, a Chrome or Kineto trace, a prediction, benchmarks.
/// InputError: missing, empty, none of these, cut off, or broken and at which byte. A trace of another program that is
/// cut off gives what is there, with a warning.
std::vector<Document> load(const std::string& path, const Progress& progress = {});

/// Of a `rehearse predict --format json`. InputError when it is none.
Prediction parse_prediction(const std::string& json, const std::string& origin);
Benchmarks parse_benchmarks(const std::string& json, const std::string& origin);

/// Chrome or Kineto JSON of another program.
Document load_foreign(const std::string& path, const Progress& progress);

}  // namespace rehearse::gui
