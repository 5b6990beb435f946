// SPDX-License-Identifier: Apache-2.0
// What the editor edits: the words of `rehearse predict`, and what can be said of them without simulating. No Qt here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/document.hpp"
#include "picture/chart.hpp"

namespace rehearse::gui {

struct Experiment {
    std::string model = "resnet50", machine = "summit", plan = "data", precision = "mixed", optimizer = "sgd";
    std::string devices = "6,48,384,1536,6144,27648";
    int batch = 32;
    bool operator==(const Experiment&) const = default;
};

/// "--model", "resnet50", ...; with `devices` in place of the experiment's.
std::vector<std::string> arguments(const Experiment& experiment, const std::string& devices = {});
/// As one types it in a shell.
std::string command_line(const Experiment& experiment);
/// From a file with a table [experiment] (models/experiment_file.hpp), what it does not say as `rehearse predict` has
/// it; a machine file or an .onnx network takes the place of that part of `before`. InputError: it cannot be read,
/// or is none of these.
Experiment experiment_in(const std::string& path, const Experiment& before);
/// A file that experiment_in reads back.
std::string to_toml(const Experiment& experiment);
/// InputError when a number is none.
std::vector<std::int64_t> devices_of(const Experiment& experiment);

struct Check {
    std::string problem;  // empty: can be run, at each of the numbers of devices
    std::string summary;  // of the largest: "data=384: 64 nodes, global batch 12288, ..."
    std::vector<MemoryPart> memory;
    double capacity_bytes = 0;
};
/// Mesh, divisibility and memory of every number of devices; `memory` and `summary` are of the largest that has a
/// schedule. The first that cannot be run is the problem.
Check check(const Experiment& experiment);

/// Who sends how much to whom in a step, at the largest point of the experiment that is small enough to be drawn.
/// InputError.
picture::Picture traffic_picture(const Experiment& experiment, picture::Size size, picture::Theme theme);

}  // namespace rehearse::gui
