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
#include "report/prediction_json.hpp"

namespace rehearse::gui {

using predict::Point;
using Prediction = report::PredictionFile;
using report::MemoryPart;

struct Benchmark {
    std::string name;
    double seconds = 0;  // the median of rehearse bench (median_s) or of repetitions; of one, the mean of its rounds
    double flops_per_s = 0, bytes_per_s = 0, peak_fraction = 0;  // 0: not counted
    std::string error;
};

/// Google Benchmark's JSON.
struct Benchmarks {
    std::string host, date;
    std::vector<picture::Roof> roofs;  // as rehearse bench adds them
    std::vector<Benchmark> rows;
    bool are_medians = false;  // else means, as Google Benchmark's real_time is
    std::string left_out{};    // "1 of 3 repetitions of BM_a/8 failed and are left out: ..."
};

struct Document {
    int id = 0;                                   // of the session that has it open, not used again
    std::string path, label;                      // label: the file's name, and of several timelines which
    std::string warning;                          // "cut off: ...", "... are left out": what is shown is not all
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
