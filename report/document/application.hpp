// SPDX-License-Identifier: Apache-2.0
// What an application for machine time is made of, and the document that it becomes. Nothing is predicted here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "models/charge.hpp"
#include "predict/prediction.hpp"
#include "report/document/document.hpp"

namespace rehearse::report {

/// The same training on several sizes. Points by devices.
struct ScalingStudy {
    bool strong = false;     // the global batch stays; else it grows with the devices
    std::int64_t batch = 0;  // strong: of all devices, weak: of one copy of the network
    std::vector<predict::Point> points;
};

/// Jobs of one kind.
struct JobPhase {
    std::string name, period;
    std::int64_t runs = 1, nodes = 1;
    Seconds wall;        // of one run
    std::string length;  // "90 epochs", "20,000 steps", "as asked for"
    bool strong = false;
};

/// How far predictions of published runs on machines of a class were off, by where they were published.
struct TrackRow {
    std::string system, machine;
    std::int64_t rows = 0;
    double median = 0, p90 = 0, in_band = 0;
};
struct PublishedUse {
    std::string id, model, unit, source;
    std::int64_t devices = 0;
    double published = 0, predicted = 0, error = 0;  // error: relative
};
struct TrackRecord {
    std::string of;         // "machines with a V100"
    bool anchored = false;  // predictions that are scaled to one measured run, as this one; else from prices alone
    TrackRow all;
    std::vector<TrackRow> systems;
    std::vector<PublishedUse> used;
};

struct ApplicationMachine {
    std::string name, summary, device;
    std::int64_t nodes = 1, devices_per_node = 1;
    std::vector<StorageTier> storage;
    std::optional<models::Charge> charge;
};

struct ApplicationJob {
    std::string model, plan, precision, precision_meaning, optimizer, framework, framework_meaning;
    std::int64_t parameters = 0;  // 0: not known
    std::string sentence;         // what the plan does
};

struct ApplicationData {
    std::optional<std::int64_t> dataset;  // samples of an epoch
    int epochs = 1;
    Bytes sample;  // as stored
    std::string input, checkpoint;
    std::int64_t checkpoint_every = 0, checkpoints_kept = 1;
};

struct Application {
    std::string title, applicant, project;
    ApplicationMachine machine;
    ApplicationJob job;
    ApplicationData data;
    double floor = 0.7;
    std::vector<ScalingStudy> studies;  // the first is the one that a size is chosen by where no phase says
    std::vector<JobPhase> phases;
    std::optional<TrackRecord> track;
    std::string command, version;
};

/// InfeasibleError for a study whose points all lack memory.
void check(const ScalingStudy& study);

/// Sections in the order that forms ask for them. InfeasibleError as check().
Document document_of(const Application& application);

/// The published figures that a track record is made of; nothing without one.
std::optional<Table> published_rows(const Application& application);

/// "measured", "anchored", "predicted" or "does not fit".
std::string basis_word(const predict::Point& point);

/// The step up in size that is the last to give at least half of the throughput that it pays for: index of the size
/// that it leads to, 0 where none does. Of points that fit, by devices.
std::size_t knee(const std::vector<predict::Point>& points);

}  // namespace rehearse::report
