// SPDX-License-Identifier: Apache-2.0
// What was measured, drawn: rooflines, winners, bandwidths.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "cli/bench.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/this_host.hpp"
#include "picture/cells.hpp"
#include "picture/roofline.hpp"
#include "picture/write.hpp"

namespace rehearse::cli {

namespace {

picture::Theme theme(const BenchOptions& options) {
    return options.dark ? picture::Theme::dark : picture::Theme::light;
}

std::string count_of(int threads) { return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"); }

std::string implementation(const bench::Sample& sample) {
    return sample.algorithm.empty() ? sample.backend : fmt::format("{} {}", sample.backend, sample.algorithm);
}

// Winograd's tile sizes are one way, as oneDNN's own choice between its kernels is one.
std::string family(const bench::Sample& sample) {
    if (sample.algorithm.empty()) return sample.backend;
    std::string name = sample.algorithm;
    while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.pop_back();
    return name;
}

// The measured rates, a series an implementation.
std::vector<picture::Series> dots_of(const std::vector<BenchRow>& rows) {
    std::vector<picture::Series> series;
    for (const BenchRow& row : rows) {
        const Problem& p = row.sample.problem;
        const Flops work = flops(p.op, p.pass, p.batch);
        const Bytes bytes = bytes_moved(p.op, p.pass, p.type, p.batch);
        if (work.value <= 0 || bytes.value <= 0) continue;
        const std::string name = implementation(row.sample);
        auto found = std::ranges::find(series, name, &picture::Series::name);
        if (found == series.end()) found = series.insert(found, {.name = name, .line = false});
        const FlopRate rate = work / row.sample.median;
        found->points.push_back({work.value / bytes.value, rate.value});
        found->titles.push_back(fmt::format("{}, {}: {}", to_string(p), name, to_string(rate)));
    }
    return series;
}

// A flat of no measured type is dashed.
std::vector<picture::Roof> roofs_of(const bench::Ceilings& ceilings, const std::vector<BenchRow>& rows) {
    std::vector<picture::Roof> roofs;
    for (const bench::Peak& peak : ceilings.peaks) {
        if (!peak.absent.empty()) continue;
        const bool used =
            std::ranges::any_of(rows, [&](const BenchRow& row) { return &roof_of(ceilings, row.sample) == &peak; });
        roofs.push_back({peak.type, peak.rate.value, false, used});
    }
    for (const auto& [level, rate] : ceilings.bandwidths) roofs.push_back({level, rate.value, true, true});
    return roofs;
}

void save(const BenchOptions& options, const std::string& path, const picture::Picture& drawn) {
    replace_file(path, picture::encoded(drawn, path));
    talk(options.common, fmt::format("drawn: {}", path));
}

// A square convolution's shape without its filter.
std::string shape_of(const Conv& op, const Problem& problem) {
    const Window& w = op.window;
    std::string text = fmt::format("{}x{}, {} channels", op.height, op.width, op.channels);
    if (op.filters != op.channels) text += fmt::format(" to {}", op.filters);
    if (w.stride_h != 1) text += fmt::format(", stride {}", w.stride_h);
    if (problem.pass != Pass::forward) text += fmt::format(", {}", to_string(problem.pass));
    return text;
}

using Contest = std::map<std::string, Seconds>;  // the best time of each family

picture::Cell cell_of(const Contest& contest, Flops work, const std::vector<std::string>& families) {
    if (contest.empty()) return {};
    const auto faster = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto winner = std::min_element(contest.begin(), contest.end(), faster);
    const auto category = std::ranges::find(families, winner->first);
    picture::Cell cell{static_cast<std::size_t>(category - families.begin()), 1, to_string(work / winner->second), "",
                       ""};
    cell.title = fmt::format("{} {}", winner->first, to_string(winner->second));
    const std::pair<const std::string, Seconds>* second = nullptr;
    for (const auto& entry : contest) {
        if (entry.first == winner->first) continue;
        cell.title += fmt::format(", {} {}", entry.first, to_string(entry.second));
        if (second == nullptr || entry.second < second->second) second = &entry;
    }
    if (second != nullptr) {
        const double lead = second->second / winner->second;
        cell.second = fmt::format("{:.3g} x {}", lead, second->first);
        cell.strength = std::clamp(0.45 + 0.55 * (lead - 1), 0.45, 1.0);  // twice as fast: the full colour
    }
    return cell;
}

}  // namespace

void check_pictures(const BenchOptions& options) {
    const bool kernels = options.kind != "stream" && options.kind != "peak";
    const auto refuse = [&](const char* name, const std::string& path, bool fits) {
        if (path.empty()) return;
        if (!fits) throw InputError(fmt::format("{}: not of bench {}", name, options.kind));
        picture::check_suffix(path);
        check_writable(path, options.common);
    };
    refuse("--roofline", options.roofline, kernels);
    refuse("--winners", options.winners, options.kind == "conv");
    refuse("--plot", options.plot, options.kind == "stream");
}

void draw_roofline(const BenchOptions& options, const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings,
                   const BenchPlace& place) {
    if (options.roofline.empty()) return;
    picture::Chart chart;
    chart.title = "Roofline of " + place.name;
    chart.subtitle =
        "roofs and rates measured in one run; bytes: every operand once; operations: those of a direct convolution";
    chart.x = {"arithmetic intensity", picture::Scale::log, picture::Unit::intensity, {}, {}};
    chart.y = {"rate", picture::Scale::log, picture::Unit::flop_rate, {}, {}};
    chart.series = dots_of(rows);
    add_roofs(chart, roofs_of(ceilings, rows), picture::palette(theme(options)));
    save(options, options.roofline, picture::xy_chart(chart, {}, theme(options)));
}

void draw_winners(const BenchOptions& options, const std::vector<BenchRow>& rows, const BenchPlace& place) {
    if (options.winners.empty()) return;
    picture::Cells cells;
    std::vector<std::string> shapes;
    std::vector<std::int64_t> filters;
    std::map<std::pair<std::string, std::int64_t>, std::pair<Flops, Contest>> contests;
    for (const BenchRow& row : rows) {
        const Problem& p = row.sample.problem;
        const Conv* conv = as_conv2d(p.op);
        if (conv == nullptr || conv->window.kernel_h != conv->window.kernel_w) continue;
        const std::string shape = shape_of(*conv, p);
        if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
        const std::int64_t filter = conv->window.kernel_h;
        if (std::ranges::find(filters, filter) == filters.end()) filters.push_back(filter);
        auto& [work, contest] = contests[{shape, filter}];
        work = flops(p.op, p.pass, p.batch);
        const std::string name = family(row.sample);
        if (std::ranges::find(cells.categories, name) == cells.categories.end()) cells.categories.push_back(name);
        const auto [entry, fresh] = contest.try_emplace(name, row.sample.median);
        entry->second = std::min(entry->second, row.sample.median);
    }
    std::ranges::sort(filters);
    for (const std::int64_t filter : filters) cells.columns.push_back(fmt::format("{}x{}", filter, filter));
    cells.rows = shapes;
    for (const std::string& shape : shapes) {
        auto& line = cells.cells.emplace_back();
        for (const std::int64_t filter : filters) {
            const auto& [work, contest] = contests[{shape, filter}];
            line.push_back(cell_of(contest, work, cells.categories));
        }
    }
    cells.title = "The fastest convolution, " + place.name;
    cells.subtitle = "rate of direct convolution's operations; below, how many times as long the next family takes";
    cells.row_title = "plane";
    cells.column_title = "filter";
    save(options, options.winners, picture::cells_chart(cells, theme(options)));
}

void draw_streams(const BenchOptions& options, const std::vector<bench::StreamSample>& samples) {
    if (options.plot.empty()) return;
    picture::Chart chart;
    chart.title = fmt::format("Bandwidth over size, {}", models::host_now().cpu);
    chart.subtitle = "f64, bytes as STREAM counts them; three arrays, of all threads together";
    chart.x = {"working set", picture::Scale::log, picture::Unit::bytes, {}, {}};
    chart.y = {"bandwidth", picture::Scale::log, picture::Unit::bandwidth, {}, {}};
    for (const bench::StreamSample& sample : samples) {
        const std::string name = fmt::format("{}, {}", to_string(sample.kernel), count_of(sample.threads));
        auto found = std::ranges::find(chart.series, name, &picture::Series::name);
        if (found == chart.series.end()) {
            found = chart.series.insert(found, {.name = name});
            found->color = series_color(picture::palette(theme(options)), static_cast<std::size_t>(sample.kernel));
            if (sample.threads != samples.front().threads) found->dash = {6, 3};
        }
        found->points.push_back({sample.working_set.value, sample.rate.value});
        found->titles.push_back(fmt::format("{}, {}: {}", name, to_string(sample.working_set), to_string(sample.rate)));
    }
    save(options, options.plot, picture::xy_chart(chart, {}, theme(options)));
}

}  // namespace rehearse::cli
