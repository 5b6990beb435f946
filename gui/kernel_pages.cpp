// SPDX-License-Identifier: Apache-2.0
// Benchmarks as pictures: rates of kernels, how far prices are from them, and collectives over sizes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "calibrate/pieces.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "gui/pages.hpp"
#include "prices/prices.hpp"

namespace rehearse::gui {

namespace {

// "1024" of "1024B" and of "n1024".
std::optional<double> number_in(std::string_view word, std::string_view before, std::string_view after) {
    if (!word.starts_with(before) || !word.ends_with(after)) return std::nullopt;
    word = word.substr(before.size(), word.size() - before.size() - after.size());
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && end == word.data() + word.size() ? std::optional(value) : std::nullopt;
}

// As nccl-tests defines it: the factor from bytes over time to what a link of the bus carries.
double bus_factor(const CollectiveRun& run) {
    const double others = static_cast<double>(run.ranks - 1) / static_cast<double>(run.ranks);
    if (run.kind == "allreduce") return 2 * others;
    return run.kind == "broadcast" || run.kind == "p2p" ? 1 : others;
}

// What a prediction takes for messages of these times (calibrate/pieces.hpp), from the smallest to the largest size.
std::optional<picture::Series> fitted(const std::vector<CollectiveRun>& runs, double factor) {
    std::vector<calibrate::MessageSample> samples;
    double least = 1e300, most = 0;
    for (const CollectiveRun& run : runs) {
        samples.push_back({Bytes{run.bytes}, Seconds{run.seconds}});
        least = std::min(least, run.bytes), most = std::max(most, run.bytes);
    }
    if (samples.size() < 3 || least >= most) return std::nullopt;
    try {
        const calibrate::PieceFit fit = calibrate::fit_pieces(samples);
        if (!fit.grows) return std::nullopt;
        Messaging messaging;
        messaging.pieces = fit.pieces;
        picture::Series line{.name = {}, .dots = false, .width = 1.25, .dash = {5, 4}};
        for (double bytes = least; bytes <= most * 1.001; bytes *= std::pow(most / least, 1.0 / 60)) {
            const Seconds time = beyond_wire(messaging, Bytes{bytes}, Seconds{0});
            line.points.push_back({bytes, factor * bytes / time.value});
        }
        return line;
    } catch (const InputError&) {
        return std::nullopt;  // sizes or times of nothing
    }
}

}  // namespace

std::string problem_of(const std::string& benchmark) { return benchmark.substr(0, benchmark.find('/')); }

std::string implementation_of(const std::string& benchmark) {
    const std::size_t slash = benchmark.find('/');
    return slash == std::string::npos ? "" : benchmark.substr(slash + 1, benchmark.find("/real_time") - slash - 1);
}

std::optional<CollectiveRun> collective_of(const Benchmark& benchmark) {
    const std::string_view name = benchmark.name;
    const std::size_t slash = name.find('/');
    const std::vector<std::string_view> words = split(name.substr(0, slash), ':');
    if (words.size() != 4 || !benchmark.error.empty() || benchmark.seconds <= 0) return std::nullopt;
    const auto ranks = number_in(words[1], "n", ""), bytes = number_in(words[2], "", "B");
    if (!ranks || !bytes || *ranks < 2 || *bytes <= 0) return std::nullopt;
    std::string algorithm = implementation_of(benchmark.name);
    if (algorithm.starts_with("comm/")) algorithm = algorithm.substr(5);
    if (algorithm == "mpi/default") algorithm = "MPI";
    CollectiveRun run{std::string{words[0]},
                      std::string{words[3]},
                      algorithm,
                      static_cast<std::int64_t>(*ranks),
                      *bytes,
                      benchmark.seconds,
                      0};
    run.bus_bytes_per_s = bus_factor(run) * run.bytes / run.seconds;
    return run;
}

picture::Picture collectives_picture(const Benchmarks& benchmarks, picture::Size size, picture::Theme theme) {
    std::map<std::pair<std::string, std::string>, std::vector<CollectiveRun>> curves;  // by kind and algorithm
    for (const Benchmark& b : benchmarks.rows) {
        if (auto run = collective_of(b))
            curves[{fmt::format("{} of {} ranks, {}", run->kind, run->ranks, run->type), run->algorithm}].push_back(
                *run);
    }
    if (curves.empty())
        throw InputError("no collectives in it: right would be rehearse bench allreduce --out FILE.json");
    const bool of_one_kind = curves.begin()->first.first == curves.rbegin()->first.first;
    picture::Chart chart;
    chart.title = fmt::format("{}, measured on {}", of_one_kind ? curves.begin()->first.first : "Collectives",
                              benchmarks.host.empty() ? "an unnamed host" : benchmarks.host);
    chart.subtitle = "bus bandwidth, as nccl-tests counts it; dashed: overhead + bytes / bandwidth, fitted to the dots";
    chart.x = {"bytes of a rank", picture::Scale::log, picture::Unit::bytes, {}, {}};
    chart.y = {"bus bandwidth", picture::Scale::log, picture::Unit::bandwidth, {}, {}};
    std::vector<picture::Series> fits;
    for (auto& [kind, runs] : curves) {
        std::ranges::sort(runs, {}, &CollectiveRun::bytes);
        const std::string name = kind.first + ", " + kind.second;
        picture::Series series{.name = of_one_kind ? kind.second : name, .width = 1.5};
        series.color = picture::series_color(picture::palette(theme), chart.series.size());
        for (const CollectiveRun& run : runs) {
            series.points.push_back({run.bytes, run.bus_bytes_per_s});
            series.titles.push_back(fmt::format("{}, {}: {}, {}", name, to_string(Bytes{run.bytes}),
                                                to_string(Seconds{run.seconds}),
                                                to_string(Bandwidth{run.bus_bytes_per_s})));
        }
        if (auto fit = fitted(runs, runs.front().bus_bytes_per_s * runs.front().seconds / runs.front().bytes)) {
            fit->color = series.color;
            fits.push_back(std::move(*fit));
            series.line = false;
        }
        chart.series.push_back(std::move(series));
    }
    for (picture::Series& fit : fits) chart.series.push_back(std::move(fit));
    return xy_chart(chart, size, theme);
}

std::vector<Residual> residuals_of(const Benchmarks& benchmarks, const Machine& machine) {
    const DeviceClass& device = class_of(machine, 0);
    std::map<std::string, Residual> fastest;  // prices are of the best implementation
    for (const Benchmark& b : benchmarks.rows) {
        const std::string problem = problem_of(b.name);
        if (!b.error.empty() || b.seconds <= 0 || b.flops_per_s <= 0) continue;
        Residual& known = fastest[problem];
        if (known.measured_s > 0 && known.measured_s <= b.seconds) continue;
        known = {problem, implementation_of(b.name), b.seconds, 0, 0, ""};
    }
    std::vector<Residual> residuals;
    for (auto& [name, residual] : fastest) {
        try {
            const Price priced = price(parse_problem(name), device);
            residual.price_s = priced.time.value, residual.error = priced.error, residual.source = priced.source;
            residual.basis = to_string(priced.basis);
        } catch (const InputError& error) {
            residual.source = error.what();
        }
        residuals.push_back(std::move(residual));
    }
    return residuals;
}

picture::Picture residuals_picture(const std::vector<Residual>& residuals, const std::string& machine,
                                   picture::Size size, picture::Theme theme) {
    picture::Chart chart;
    chart.title = fmt::format("Prices of {} against these measurements", machine);
    chart.subtitle = "price / fastest measured time - 1, a dot a problem; above 0: the prediction is too slow";
    chart.x = {"measured time", picture::Scale::log, picture::Unit::seconds, {}, {}};
    chart.y = {"price is off by", picture::Scale::linear, picture::Unit::share, {}, {}};
    std::map<std::string, picture::Series> series;
    double least = 1e300, most = 0;
    std::string refused;
    for (const Residual& r : residuals) {
        if (r.price_s <= 0) {
            refused = r.source;
            continue;
        }
        picture::Series& of = series[r.basis];
        of.name = r.basis, of.line = false;
        of.points.push_back({r.measured_s, r.price_s / r.measured_s - 1});
        of.titles.push_back(fmt::format("{}: measured {} ({}), price {} ± {:.0f} %, {}: {}", r.problem,
                                        to_string(Seconds{r.measured_s}), r.implementation,
                                        to_string(Seconds{r.price_s}), 100 * r.error, r.basis, r.source));
        least = std::min(least, r.measured_s), most = std::max(most, r.measured_s);
    }
    if (series.empty())
        throw InputError(refused.empty() ? "no kernels in it: right would be rehearse bench --suite ... --out FILE.json"
                                         : "none of these problems has a price: " + refused);
    for (auto& [kind, of] : series) chart.series.push_back(std::move(of));
    chart.series.push_back({.points = {{least / 1.2, 0}, {most * 1.2, 0}},
                            .dots = false,
                            .color = picture::palette(theme).axis,
                            .width = 1.25,
                            .dash = {5, 4}});
    return xy_chart(chart, size, theme);
}

picture::Picture kernels_picture(const Benchmarks& benchmarks, picture::Size size, picture::Theme theme) {
    picture::Chart chart;
    chart.title = fmt::format("Kernels measured on {}", benchmarks.host.empty() ? "an unnamed host" : benchmarks.host);
    const bool rated = std::ranges::any_of(benchmarks.rows, [](const Benchmark& b) { return b.flops_per_s > 0; });
    const bool roofline =
        std::ranges::any_of(benchmarks.rows, [](const Benchmark& b) { return b.flops_per_s > 0 && b.bytes_per_s > 0; });
    chart.subtitle = roofline
                         ? benchmarks.roofs.empty()
                               ? "rate against arithmetic intensity; the dashed lines are the best that was measured"
                               : "rate against arithmetic intensity, below the roofs that were measured beside them"
                     : rated ? "rate against duration"
                             : "duration, in the order of the file";
    chart.x = roofline ? picture::Axis{"arithmetic intensity", picture::Scale::log, picture::Unit::intensity, {}, {}}
                       : picture::Axis{rated ? "duration" : "benchmark",
                                       rated ? picture::Scale::log : picture::Scale::linear,
                                       rated ? picture::Unit::seconds : picture::Unit::none,
                                       {},
                                       {}};
    chart.y = rated ? picture::Axis{"rate", picture::Scale::log, picture::Unit::flop_rate, {}, {}}
                    : picture::Axis{"duration", picture::Scale::log, picture::Unit::seconds, {}, {}};
    std::map<std::string, picture::Series> series;
    double best_rate = 0, best_bytes = 0, least = 1e300, number = 0;
    for (const Benchmark& b : benchmarks.rows) {
        ++number;
        if (!b.error.empty() || b.seconds <= 0 || (rated && b.flops_per_s <= 0) || (roofline && b.bytes_per_s <= 0))
            continue;
        const std::string name = implementation_of(b.name);
        picture::Series& s = series[name];
        s.name = name.empty() ? "benchmarks" : name;
        s.line = false;
        const double x = roofline ? b.flops_per_s / b.bytes_per_s : rated ? b.seconds : number;
        s.points.push_back({x, rated ? b.flops_per_s : b.seconds});
        s.titles.push_back(fmt::format("{}: {}{}", b.name, to_string(Seconds{b.seconds}),
                                       rated ? ", " + to_string(FlopRate{b.flops_per_s}) : ""));
        best_rate = std::max(best_rate, b.flops_per_s);
        best_bytes = std::max(best_bytes, b.bytes_per_s);
        least = std::min(least, x);
    }
    for (auto& [name, s] : series) chart.series.push_back(std::move(s));
    if (roofline && !benchmarks.roofs.empty()) {
        add_roofs(chart, benchmarks.roofs, palette(theme));
    } else if (roofline && best_bytes > 0) {
        const double ridge = best_rate / best_bytes;
        chart.series.push_back({.points = {{std::min(least, ridge) / 2, std::min(least, ridge) / 2 * best_bytes},
                                           {ridge, best_rate},
                                           {ridge * 20, best_rate}},
                                .dots = false,
                                .color = palette(theme).axis,
                                .width = 1.5,
                                .dash = {6, 4}});
    }
    return xy_chart(chart, size, theme);
}

}  // namespace rehearse::gui
