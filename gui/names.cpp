// SPDX-License-Identifier: Apache-2.0
#include "gui/names.hpp"

#include <QWidget>

namespace rehearse::gui {

namespace {

struct ControlName {
    const char *object, *name;
};

constexpr ControlName names[] = {
    {"batch", "Samples in a step of one copy"},
    {"benchmarks", "Benchmarks"},
    {"chunks", "Chunks"},
    {"collectives_picture", "Bus bandwidth of collectives"},
    {"compare_0", "Predicted timeline"},
    {"compare_1", "Measured timeline"},
    {"compare_measured", "Measured timeline"},
    {"compare_predicted", "Predicted timeline"},
    {"curve", "Predicted throughput"},
    {"details", "Details of the selection"},
    {"differences", "Differences"},
    {"differences_picture", "Differences by layer and pass"},
    {"experiment_memory", "Memory of the experiment"},
    {"filter", "Filter of lanes"},
    {"front_picture", "Step time against devices and memory"},
    {"links", "Links"},
    {"links_picture", "Load of links over time"},
    {"load", "What links show"},
    {"load_node", "Node"},
    {"load_time", "Moment of the load"},
    {"log", "Log of the run"},
    {"memory_over_time", "Memory over time"},
    {"memory_picture", "Memory by kind"},
    {"memory_table", "Memory by kind"},
    {"micro-batches", "Micro-batches"},
    {"overview_picture", "Overview"},
    {"overview_points", "Point of the prediction"},
    {"path", "Critical path"},
    {"pipeline_picture", "Pipeline schedules"},
    {"pipeline_shown", "Pipeline"},
    {"plan", "Plan"},
    {"points", "Points of the predictions"},
    {"priced_machine", "Machine of the prices"},
    {"rates_picture", "Rates of kernels"},
    {"residuals", "Prices against measurements"},
    {"residuals_picture", "Prices against measurements"},
    {"runs_table", "Runs"},
    {"scaling_metric", "Metric"},
    {"scaling_picture", "Scaling"},
    {"search", "Search"},
    {"stages", "Stages"},
    {"timeline_coloring", "Colours"},
    {"timeline_file", "Timeline"},
    {"timeline_view", "Timeline"},
    {"topology_machine", "Machine"},
    {"topology_picture", "Topology"},
    {"traffic_picture", "Traffic between ranks"},
    {"waterfall_picture", "From the measured to the predicted step"},
};

}  // namespace

void name_controls(QWidget& widget) {
    for (const ControlName& each : names) {
        for (QWidget* control : widget.findChildren<QWidget*>(each.object))
            if (control->accessibleName().isEmpty()) control->setAccessibleName(each.name);
    }
}

}  // namespace rehearse::gui
