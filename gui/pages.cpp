// SPDX-License-Identifier: Apache-2.0
#include "gui/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/error.hpp"
#include "picture/cells.hpp"
#include "picture/stairs.hpp"
#include "report/scaling_point.hpp"

namespace rehearse::gui {

namespace {

constexpr double million = 1e6;  // samples that points are compared by

using Words = std::vector<std::pair<std::string, std::string>>;  // of an option: its name, what it says

// What a prediction was asked, and whether runs that were measured are behind it.
Words options_of(const Prediction& prediction) {
    Words words = prediction.configuration;
    const Point& last = prediction.points.back();
    words.emplace_back("", last.anchor || last.measured ? "with a pilot" : "without a pilot");
    return words;
}

// To names that several have what their predictions differ in.
void add_differences(std::vector<NamedPrediction>& all, const std::function<Words(std::size_t)>& words_of) {
    std::map<std::string, std::vector<std::size_t>> of_name;
    for (std::size_t i = 0; i < all.size(); ++i) of_name[all[i].name].push_back(i);
    for (const auto& [name, those] : of_name) {
        std::map<std::string, std::set<std::string>> said;  // by option
        for (const std::size_t i : those) {
            for (const auto& [option, word] : words_of(i)) said[option].insert(word);
        }
        for (const std::size_t i : those) {
            for (const auto& [option, word] : words_of(i)) {
                if (said[option].size() > 1)
                    all[i].name += fmt::format(", {}{}", option.empty() ? "" : option + " ", word);
            }
        }
    }
}

}  // namespace

std::string name_of(const Prediction& prediction) {
    const auto& noisy = prediction.points.front().noisy;
    return fmt::format("{} on {}, {}, {}{}", prediction.model, prediction.machine, prediction.plan,
                       prediction.precision, noisy ? fmt::format(", noise {:g}", noisy->sigma) : "");
}

std::vector<NamedPrediction> named(const std::vector<Document>& documents) {
    std::vector<NamedPrediction> all;
    std::vector<const Document*> of;
    for (const Document& document : documents) {
        if (document.prediction == nullptr) continue;
        all.push_back({document.prediction, name_of(*document.prediction)});
        of.push_back(&document);
    }
    add_differences(all, [&](std::size_t i) { return options_of(*of[i]->prediction); });
    add_differences(all, [&](std::size_t i) { return Words{{"", of[i]->label}}; });
    add_differences(all, [&](std::size_t i) { return Words{{"", of[i]->path}}; });
    return all;
}

picture::ScalingCurve curve_of(const NamedPrediction& named) {
    picture::ScalingCurve curve{named.name, {}};
    for (const Point& p : named.prediction->points) curve.points.push_back(report::scaling_point(p));
    return curve;
}

std::string front_title(const NamedPrediction& named, const Point& p) {
    return fmt::format("{} devices: {} for a million samples, {} of memory, {:.4g} device-hours\n{}", p.figures.devices,
                       to_string(p.time_of(million)), to_string(p.memory.peak), p.device_hours(million), named.name);
}

picture::Picture pareto_picture(const std::vector<NamedPrediction>& predictions, picture::Size size,
                                picture::Theme theme) {
    picture::Chart chart;
    chart.title = "Time, devices, memory";
    chart.subtitle = "of a million samples; size of a dot: memory of a device; dashed: the front";
    chart.x = {"devices", picture::Scale::log, picture::Unit::none, {}, {}};
    chart.y = {"time of 1,000,000 samples", picture::Scale::log, picture::Unit::seconds, {}, {}};
    std::vector<picture::Point> all;
    double most = 1;
    for (const NamedPrediction& each : predictions) {
        for (const Point& p : each.prediction->points) most = std::max(most, p.memory.peak.value);
    }
    for (const NamedPrediction& each : predictions) {
        picture::Series series{.name = each.name, .line = false};
        for (const Point& p : each.prediction->points) {
            if (!p.memory.fits) continue;
            const picture::Point at{static_cast<double>(p.figures.devices), p.time_of(million).value};
            series.points.push_back(at);
            series.titles.push_back(front_title(each, p));
            series.radii.push_back(2.5 + 5.5 * std::sqrt(p.memory.peak.value / most));
            chart.labels.push_back({at, to_string(p.memory.peak), picture::Anchor::start, {}, {}});
            all.push_back(at);
        }
        chart.series.push_back(std::move(series));
    }
    std::ranges::sort(all, {}, [](const picture::Point& p) { return std::pair{p.x, p.y}; });
    picture::Series front{.points = {}, .dots = false, .color = palette(theme).axis, .width = 1.25, .dash = {5, 4}};
    for (const picture::Point& p : all) {
        if (front.points.empty() || p.y < front.points.back().y) front.points.push_back(p);
    }
    chart.series.push_back(std::move(front));
    return xy_chart(chart, size, theme);
}

picture::Picture memory_picture(const std::vector<MemoryPart>& parts, double capacity_bytes, const std::string& title,
                                double width, picture::Theme theme) {
    picture::Stacks stacks;
    stacks.title = title;
    stacks.subtitle =
        "at the fullest moment of each class of ranks, without workspaces and what a framework keeps for itself";
    stacks.unit = picture::Unit::bytes;
    if (capacity_bytes > 0) {
        stacks.limit = capacity_bytes;
        stacks.limit_name = "capacity " + to_string(Bytes{capacity_bytes});
    }
    for (const MemoryPart& part : parts) {
        if (part.kind == "total") continue;
        auto kind = std::ranges::find(stacks.categories, part.kind);
        if (kind == stacks.categories.end()) kind = stacks.categories.insert(kind, part.kind);
        const auto category = static_cast<std::size_t>(kind - stacks.categories.begin());
        const std::string name = part.rank_class.empty() || part.rank_class == "all" ? "every rank" : part.rank_class;
        auto row = std::ranges::find(stacks.rows, name, &picture::StackRow::name);
        if (row == stacks.rows.end()) row = stacks.rows.insert(row, {name, "", {}, {}, {}});
        row->parts.push_back(
            {category, part.bytes.value, fmt::format("{}: {}", part.kind, to_string(Bytes{part.bytes.value}))});
    }
    for (picture::StackRow& row : stacks.rows) {
        double sum = 0;
        for (const auto& part : row.parts) sum += part.value;
        row.note = to_string(Bytes{sum});
    }
    return stacks_picture(stacks, width, theme);
}

picture::Picture memory_over_time(const picture::Lanes& lanes, picture::Size size, picture::Theme theme) {
    picture::Chart chart;
    chart.title = "Memory in use over time";
    chart.x = {"time", picture::Scale::linear, picture::Unit::seconds, {}, {}};
    chart.y = {"memory", picture::Scale::linear, picture::Unit::bytes, {}, {}};
    for (const Counter& counter : lanes.counters) {
        if (counter.unit != "bytes" || counter.points.size() < 2 || chart.series.size() == 8) continue;
        chart.series.push_back({.name = counter.name, .points = picture::stairs_of(counter), .dots = false});
    }
    if (chart.series.empty()) throw InputError("this timeline has no counters of memory");
    return xy_chart(chart, size, theme);
}

picture::Waterfall waterfall_of(const trace::Comparison& comparison) {
    picture::Waterfall waterfall;
    waterfall.title = "From the measured step to the predicted one";
    waterfall.subtitle =
        "by pass: green where the prediction is faster than the measurement, orange where it is slower; the rest is "
        "overlap and waiting";
    waterfall.from_name = "measured";
    waterfall.to_name = "predicted";
    waterfall.from = comparison.whole.measured.value;
    double rest = comparison.whole.predicted.value - comparison.whole.measured.value;
    for (const trace::Row& row : comparison.passes) {
        const double change = row.predicted.value - row.measured.value;
        waterfall.changes.emplace_back(row.name.empty() ? "without a name" : row.name, change);
        rest -= change;
    }
    waterfall.changes.emplace_back("overlap and waiting", rest);
    return waterfall;
}

picture::Picture differences_picture(const trace::Comparison& comparison, picture::Theme theme) {
    constexpr std::size_t most_layers = 60;
    picture::Cells cells{
        .title = "Where the prediction is off",
        .subtitle = "(predicted - measured) / measured; the stronger the colour, the more of the step it is",
        .row_title = "layer",
        .column_title = "pass",
        .rows = {},
        .columns = {},
        .categories = {"predicted too fast", "predicted too slow"},
        .cells = {}};
    const auto difference = [](const trace::Row& row) { return row.predicted.value - row.measured.value; };
    const auto layer_of = [](const std::string& step) { return step.substr(0, step.rfind(':')); };
    std::map<std::string, double> off;
    double most = 0;
    for (const trace::Row& row : comparison.steps) {
        off[layer_of(row.name)] += std::abs(difference(row));
        most = std::max(most, std::abs(difference(row)));
    }
    std::vector<std::pair<double, std::string>> worst;
    for (const auto& [layer, sum] : off) worst.emplace_back(-sum, layer);
    std::ranges::sort(worst);
    if (worst.size() > most_layers) worst.resize(most_layers);
    const auto place = [](std::vector<std::string>& names, const std::string& name) {
        const auto found = std::ranges::find(names, name);
        if (found == names.end()) names.push_back(name);
        return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    };
    for (const trace::Row& row : comparison.steps) {
        const std::string layer = layer_of(row.name);
        if (std::ranges::find(worst, layer, &std::pair<double, std::string>::second) == worst.end()) continue;
        const bool has_pass = layer.size() < row.name.size();
        const std::size_t r = place(cells.rows, layer);
        const std::size_t c = place(cells.columns, has_pass ? row.name.substr(layer.size() + 1) : "all");
        cells.cells.resize(cells.rows.size());
        cells.cells[r].resize(std::max(cells.cells[r].size(), c + 1));
        cells.cells[r][c] = {
            difference(row) > 0 ? std::size_t{1} : std::size_t{0},
            0.06 + 0.94 * std::abs(difference(row)) / std::max(most, 1e-30),
            std::isfinite(row.error) ? fmt::format("{:+.0f} %", 100 * row.error) : "new", to_string(row.measured),
            fmt::format("{} : predicted {}, measured {}", row.name, to_string(row.predicted), to_string(row.measured))};
    }
    for (auto& row : cells.cells) row.resize(cells.columns.size());
    return cells_chart(cells, theme);
}

}  // namespace rehearse::gui
