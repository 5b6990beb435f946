// SPDX-License-Identifier: Apache-2.0
// Scaling: its table, its charts, and why a size was chosen.
#include <fmt/format.h>

#include <algorithm>

#include "picture/scaling.hpp"
#include "report/document/numbers.hpp"
#include "report/document/sections.hpp"

namespace rehearse::report {

namespace {

const char* name_of(const ScalingStudy& study) { return study.strong ? "Strong scaling" : "Weak scaling"; }

std::string batch_of(const ScalingStudy& study) {
    return fmt::format("{} sample{} on {}", grouped(study.batch), study.batch == 1 ? "" : "s",
                       study.strong ? "all devices together" : "each copy of the network");
}

// Times of a table are in one unit, that of its longest.
struct TimeUnit {
    const char* name;
    double seconds;
};
TimeUnit time_unit(const std::vector<predict::Point>& points) {
    double longest = 0;
    for (const predict::Point& point : points) longest = std::max(longest, step_of(point).value);
    return longest < 1 ? TimeUnit{"ms", 1e-3} : TimeUnit{"s", 1};
}

std::vector<Cell> row_of(const predict::Point& point, const predict::Point& smallest, const TimeUnit& unit) {
    const bool fits = point.memory.fits, measured = point.measured.has_value();
    const double step = step_of(point).value;
    const auto of = [&](double seconds) { return rounded(seconds / unit.seconds); };
    const auto if_fits = [&](Cell cell) { return fits ? cell : words("does not fit"); };
    const double base = throughput_of(smallest);
    return {
        count(point.nodes),
        count(point.figures.devices),
        count(point.figures.global_batch),
        if_fits({of(step), step}),
        if_fits({measured ? "measured" : fmt::format("{} to {}", of(point.band.low.value), of(point.band.high.value)),
                 {point.band.low.value, point.band.high.value}}),
        if_fits(figure(throughput_of(point))),
        if_fits(figure(throughput_of(point) / base)),
        if_fits(percent(efficiency_of(point, smallest))),
        {fmt::format("{} of {}", rounded(point.memory.peak.value / 1e9), rounded(point.memory.capacity.value / 1e9)),
         point.memory.peak.value},
        words(basis_word(point))};
}

Table scaling_table(const ScalingStudy& study, const std::string& machine) {
    const std::vector<predict::Point> points = feasible(study);
    const TimeUnit unit = time_unit(points);
    Table table{
        study.strong ? "strong-scaling" : "weak-scaling",
        fmt::format("{} on {}: batch of {}. Speedup and efficiency are relative to {} node{} ({} device{}), the "
                    "smallest size with enough memory.",
                    name_of(study), machine, batch_of(study), grouped(points.front().nodes),
                    points.front().nodes == 1 ? "" : "s", grouped(points.front().figures.devices),
                    points.front().figures.devices == 1 ? "" : "s"),
        {{"nodes", "nodes", "nodes"},
         {"devices", "devices", "devices"},
         {"global_batch", "batch", "samples"},
         {"step_s", "step", unit.name},
         {"step_low_s", "90 % interval", unit.name, true, "step_high_s"},
         {"samples_per_s", "rate", "samples/s"},
         {"speedup", "speedup", "times"},
         {"efficiency_percent", "efficiency", "%"},
         {"memory_bytes", "memory", "GB a device"},
         {"basis", "basis", "", false}},
        {}};
    for (const predict::Point& point : study.points) table.rows.push_back(row_of(point, points.front(), unit));
    return table;
}

picture::ScalingCurve curve_of(const ScalingStudy& study) {
    picture::ScalingCurve curve{fmt::format("{}, batch {}{}", study.strong ? "strong" : "weak", grouped(study.batch),
                                            study.strong ? "" : " a copy"),
                                {}};
    const std::vector<predict::Point> points = feasible(study);
    for (const predict::Point& point : points)
        curve.points.push_back({.devices = static_cast<double>(point.figures.devices),
                                .step_s = step_of(point).value,
                                .low_s = point.band.low.value,
                                .high_s = point.band.high.value,
                                .samples_per_s = throughput_of(point),
                                .efficiency = efficiency_of(point, points.front()),
                                .baseline = &point == &points.front()});
    return curve;
}

bool same_place(const predict::Point& a, const predict::Point& b) { return a.figures.devices == b.figures.devices; }

// What a size costs: of the whole training, or of a million samples where its length is not known.
struct Price {
    double hours = 0, node_hours = 0;
};
Price price_of(const predict::Point& point) {
    if (point.training) return {point.training->all.value / 3600, point.training->node_hours};
    const double hours = 1e6 / throughput_of(point) / 3600;
    return {hours, hours * static_cast<double>(point.nodes)};
}

std::string remarks(const Choice& choice, std::size_t i, std::size_t cheapest, std::size_t fastest) {
    std::string text;
    const auto add = [&](bool holds, const char* words) {
        if (holds) text += fmt::format("{}{}", text.empty() ? "" : ", ", words);
    };
    add(i == choice.chosen, choice.phase != nullptr ? "asked for" : "chosen");
    add(i == cheapest, "cheapest");
    add(i == fastest, "fastest");
    add(i == choice.knee, "knee");
    add(i == choice.at_floor, "last above the floor");
    return text.empty() ? "–" : text;
}

Table sizes_table(const Choice& choice, std::size_t cheapest, std::size_t fastest) {
    const bool whole = choice.point().training.has_value();
    Table table{
        "sizes",
        whole ? "What a whole training takes, by its size." : "What a million samples take, by the size of the job.",
        {{"nodes", "nodes", "nodes"},
         {"hours", "time", "h"},
         {"node_hours", "cost", "node-hours"},
         {"efficiency_percent", "efficiency", "%"},
         {"basis", "basis", "", false},
         {"remark", "remark", "", false}},
        {}};
    for (std::size_t i = 0; i < choice.points.size(); ++i) {
        const predict::Point& point = choice.points[i];
        const Price price = price_of(point);
        table.rows.push_back({count(point.nodes), figure(price.hours), figure(price.node_hours),
                              percent(efficiency_of(point, choice.points.front())), words(basis_word(point)),
                              words(remarks(choice, i, cheapest, fastest))});
    }
    return table;
}

std::string nodes_text(std::int64_t nodes) { return fmt::format("{} node{}", grouped(nodes), nodes == 1 ? "" : "s"); }

}  // namespace

Section scaling_section(const Application& application) {
    Section section{"Scaling", {}};
    const ScalingStudy& first = application.studies.front();
    const bool any_measured =
        std::ranges::any_of(first.points, [](const predict::Point& p) { return p.measured || p.anchor; });
    section.blocks.push_back(Paragraph{fmt::format(
        "Training of {}{} on {} ({}). A row is measured where the step was timed, anchored where "
        "the prediction is scaled to a measured step, and predicted where nothing of this "
        "program was measured{}. Intervals hold the true step nine times in ten.",
        application.job.model,
        application.job.parameters > 0
            ? fmt::format(" ({} million parameters)", rounded(static_cast<double>(application.job.parameters) / 1e6))
            : "",
        application.machine.name, application.machine.device, any_measured ? "" : "; here nothing was")});
    for (const ScalingStudy& study : application.studies)
        section.blocks.push_back(scaling_table(study, application.machine.name));
    return section;
}

Section chart_section(const Application& application) {
    Section section{"How it scales", {}};
    std::vector<picture::ScalingCurve> curves;
    for (const ScalingStudy& study : application.studies) curves.push_back(curve_of(study));
    Figure rate{"throughput",
                "Samples a second over devices. Dashed: ideal scaling from the smallest size; shaded: 90 % interval.",
                picture::scaling_chart(curves, picture::ScalingMetric::throughput, "")};
    rate.chart.x.title = "devices";
    rate.chart.y.title = "samples/s";
    Figure share{"efficiency",
                 fmt::format("Throughput a device relative to the smallest size; dotted: the floor of {:.0f} %.",
                             100 * application.floor),
                 picture::scaling_chart(curves, picture::ScalingMetric::efficiency, "")};
    double least = curves.front().points.front().devices, most = least;
    for (const picture::ScalingCurve& curve : curves)
        for (const picture::ScalingPoint& point : curve.points)
            least = std::min(least, point.devices), most = std::max(most, point.devices);
    if (most > least)
        share.chart.series.push_back({.points = {{least, application.floor}, {most, application.floor}},
                                      .dots = false,
                                      .color = picture::Color{136, 136, 136},
                                      .width = 1,
                                      .dash = {2, 3}});
    const double high = share.chart.y.range->high, apart = high > 1.5 ? 0.5 : 0.25;
    for (int i = 0; i * apart <= high; ++i) share.chart.y.ticks.push_back(i * apart);
    share.size.height = 230;
    rate.size.height = 260;
    section.blocks.push_back(std::move(rate));
    section.blocks.push_back(std::move(share));
    return section;
}

Section size_section(const Application& application, const Choice& choice) {
    const auto cost = [](const predict::Point& point) { return price_of(point).node_hours; };
    const auto time = [](const predict::Point& point) { return price_of(point).hours; };
    const auto cheapest =
        static_cast<std::size_t>(std::ranges::min_element(choice.points, {}, cost) - choice.points.begin());
    const auto fastest =
        static_cast<std::size_t>(std::ranges::min_element(choice.points, {}, time) - choice.points.begin());
    const predict::Point& chosen = choice.point();
    const double efficiency = efficiency_of(chosen, choice.points.front());
    std::string text = fmt::format(
        "{} {}: it runs at {:.1f} % efficiency, {} the floor of {:.0f} %. ",
        choice.phase != nullptr ? "Most of the time is asked for on" : "The largest size above the floor is",
        nodes_text(chosen.nodes), 100 * efficiency, efficiency >= application.floor ? "above" : "below",
        100 * application.floor);
    text += fmt::format("The knee lies at {}: {}. ", nodes_text(choice.points[choice.knee].nodes),
                        choice.knee + 1 == choice.points.size()
                            ? "up to there, the largest size of the study, each step up gives at least half of the "
                              "throughput that it pays for"
                            : "the next step up gives less than half of the throughput that it pays for");
    const auto compared = [&](const predict::Point& other, const char* how) {
        if (same_place(other, chosen)) return fmt::format("It is the {} of these sizes. ", how);
        const Price mine = price_of(chosen), its = price_of(other);
        return fmt::format("The {}, {}, takes {} times the time and {} times the node-hours. ", how,
                           nodes_text(other.nodes), rounded(its.hours / mine.hours),
                           rounded(its.node_hours / mine.node_hours));
    };
    text += compared(choice.points[cheapest], "cheapest") + compared(choice.points[fastest], "fastest");
    text.pop_back();
    return {"Why this size", {Paragraph{text}, sizes_table(choice, cheapest, fastest)}};
}

}  // namespace rehearse::report
