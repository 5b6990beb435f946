// SPDX-License-Identifier: Apache-2.0
// Published points and what is predicted for them, drawn: a chart a system, machine and metric.
#include "cli/published_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/file.hpp"
#include "picture/chart.hpp"
#include "picture/write.hpp"

namespace rehearse::cli {

namespace {

using picture::Point;
using validate::Answer;
using validate::ReplayedRow;

struct Curve {
    std::map<std::int64_t, const ReplayedRow*> by_devices;
};
using Curves = std::map<std::string, Curve>;  // by what tells them apart

std::string slug(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
        if (plain) result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (!plain && !result.empty() && result.back() != '-') result += '-';
    }
    while (result.ends_with('-')) result.pop_back();
    return result;
}

/// Charts by title; of each the curves with two devices or more.
std::map<std::string, Curves> charts_of(const std::vector<ReplayedRow>& rows) {
    std::map<std::string, Curves> charts;
    for (const ReplayedRow& replayed : rows) {
        const validate::PublishedRow& row = replayed.row;
        if (!replayed.answered() || row.devices < 1) continue;
        const std::string title = fmt::format("{}, {}, {} ({})", row.text("system"), row.text("machine"),
                                              row.text("metric"), row.text("unit"));
        const auto machine = replayed.settings.find("machine"), data = replayed.settings.find("data");
        std::string name = fmt::format("{} {}", row.text("model"), row.text("precision"));
        if (const auto batch = row.number("batch_per_device")) name += fmt::format(", {} a device", *batch);
        if (data != replayed.settings.end() && data->second == "files") name += ", files";
        if (const std::size_t at = machine->second.find('@'); at != std::string::npos)
            name += machine->second.substr(at);
        charts[title][name].by_devices.emplace(row.devices, &replayed);
    }
    for (auto& [title, curves] : charts) {
        std::erase_if(curves, [](const auto& curve) { return curve.second.by_devices.size() < 2; });
    }
    std::erase_if(charts, [](const auto& chart) { return chart.second.empty(); });
    return charts;
}

// A curve of rows that are anchored on each other begins at its anchor, which it meets; one without anchors is cold.
void add_predicted(const Curve& curve, picture::Series& line) {
    const bool anchored =
        std::ranges::any_of(curve.by_devices, [](const auto& of) { return of.second->anchored.has_value(); });
    std::set<std::string> anchors;
    for (const auto& [devices, row] : curve.by_devices) anchors.insert(row->anchor);
    for (const auto& [devices, row] : curve.by_devices) {
        const double published = row->row.value;
        Answer answer{published, published, published};
        if (row->anchored) {
            answer = *row->anchored;
        } else if (!anchored) {
            answer = *row->cold;
        } else if (!anchors.contains(row->row.text("id"))) {
            continue;
        }
        line.points.push_back({static_cast<double>(devices), answer.predicted});
        line.low.push_back(answer.low);
        line.high.push_back(answer.high);
    }
}

picture::Chart chart_of(const std::string& title, const Curves& curves) {
    picture::Chart chart;
    chart.title = title;
    chart.subtitle = "dots: published; lines and bands: predicted, from the run that they are anchored on, else cold";
    chart.x.title = "devices";
    chart.x.scale = chart.y.scale = picture::Scale::log;
    const picture::Palette& colors = picture::palette(picture::Theme::light);
    std::size_t next = 0;
    for (const auto& [name, curve] : curves) {
        const picture::Color color = picture::series_color(colors, next++);
        picture::Series dots{.name = name, .line = false, .color = color};
        picture::Series line{.dots = false, .color = color};
        for (const auto& [devices, row] : curve.by_devices) {
            dots.points.push_back({static_cast<double>(devices), row->row.value});
        }
        add_predicted(curve, line);
        chart.series.push_back(std::move(line));
        chart.series.push_back(std::move(dots));
    }
    return chart;
}

}  // namespace

void check_charts(const std::string& folder, bool force) {
    std::error_code unknown;
    if (std::filesystem::exists(folder, unknown) && !std::filesystem::is_directory(folder, unknown)) {
        throw InputError(fmt::format("--plot {}: is a file, not a folder", folder));
    }
    if (force || !std::filesystem::is_directory(folder, unknown)) return;
    for (const auto& entry : std::filesystem::directory_iterator{folder, unknown}) {
        if (entry.path().extension() != ".svg") continue;
        throw InputError(fmt::format("--plot {}: there is {} already; --force overwrites it", folder,
                                     entry.path().filename().string()));
    }
}

std::vector<std::string> draw_published(const std::vector<ReplayedRow>& rows, const std::string& folder) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) throw InputError(fmt::format("--plot {}: {}", folder, failed.message()));
    std::vector<std::string> files;
    for (const auto& [title, curves] : charts_of(rows)) {
        files.push_back(fmt::format("{}/{}.svg", folder, slug(title)));
        replace_file(files.back(), picture::to_svg(picture::xy_chart(chart_of(title, curves))));
    }
    return files;
}

}  // namespace rehearse::cli
