// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_report.hpp"

#include <fmt/format.h>

#include <map>

#include "calibrate/collective_times.hpp"
#include "calibrate/fit.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "picture/chart.hpp"
#include "picture/write.hpp"

namespace rehearse::cli {

namespace {

Json compute_rows(const calibrate::Samples& samples) {
    Json rows = Json::array();
    for (const calibrate::Sample& s : samples.compute) {
        const Bytes bytes = bytes_moved(s.problem.op, s.problem.pass, s.problem.type, s.problem.batch);
        rows.push_back({{"problem", to_string(s.problem)},
                        {"backend", s.backend},
                        {"alone_s", (s.alone > Seconds{0} ? s.alone : s.median).value},
                        {"median_s", s.median.value},
                        {"error", s.error},
                        {"samples", s.count},
                        {"flops_per_s", (flops(s.problem.op, s.problem.pass, s.problem.batch) / s.median).value},
                        {"bytes_per_s", (bytes / s.median).value}});
    }
    return rows;
}

std::map<double, std::vector<double>> by_size(const calibrate::Messages& messages) {
    std::map<double, std::vector<double>> times;
    for (const calibrate::MessageSample& s : messages.samples) times[s.size.value].push_back(s.one_way.value);
    return times;
}

Seconds fitted(const Messaging& messaging, double size) { return beyond_wire(messaging, Bytes{size}, Seconds{0}); }

void add_messages(Json& rows, std::string_view where, const calibrate::Messages& messages, const Messaging& messaging) {
    for (const auto& [size, times] : by_size(messages)) {
        const double median = calibrate::median(times), fit = fitted(messaging, size).value;
        rows.push_back({{"where", where},
                        {"size_bytes", size},
                        {"median_s", median},
                        {"fitted_s", fit},
                        {"residual", fit / median - 1},
                        {"spread", calibrate::robust_deviation(times) / median},
                        {"samples", times.size()}});
    }
}

void add_overlap(Json& rows, std::string_view where, const calibrate::Messages& messages, const Overlap& overlap) {
    std::map<double, std::vector<std::vector<double>>> sizes;  // alone, beside, lost
    for (const calibrate::OverlapSample& s : messages.overlap) {
        auto& columns = sizes[s.size.value];
        columns.resize(3);
        columns[0].push_back(s.alone.value);
        columns[1].push_back(s.beside.value);
        columns[2].push_back(s.lost.value);
    }
    for (const auto& [size, columns] : sizes) {
        rows.push_back({{"where", where},
                        {"size_bytes", size},
                        {"alone_s", calibrate::median(columns[0])},
                        {"beside_s", calibrate::median(columns[1])},
                        {"lost_s", calibrate::median(columns[2])},
                        {"fitted_lost_s", (overlap.core_time.value + Bytes{size} / overlap.core_rate.value).value}});
    }
}

void add_residuals(Report& report, const Calibration& made) {
    Json messages = Json::array(), overlap = Json::array();
    const auto add = [&](std::string_view where, const std::optional<calibrate::Messages>& measured,
                         const Messaging& messaging) {
        if (!measured) return;
        add_messages(messages, where, *measured, messaging);
        add_overlap(overlap, where, *measured, messaging.overlap);
    };
    add("inside", made.samples.messages, made.host.inside);
    add("across", made.samples.across, made.host.across);
    report.document["messages"] = messages;
    report.document["overlap"] = overlap;
    if (!messages.empty())
        report.tables.push_back({"messages",
                                 "a message of a ring round: measured and fitted",
                                 {{"where", "where"},
                                  {"size_bytes", "size", Show::bytes},
                                  {"median_s", "median", Show::seconds},
                                  {"fitted_s", "fitted", Show::seconds},
                                  {"residual", "residual", Show::percent},
                                  {"spread", "spread", Show::percent}}});
    if (!overlap.empty())
        report.tables.push_back({"overlap",
                                 "a message out and one in, beside computation",
                                 {{"where", "where"},
                                  {"size_bytes", "size", Show::bytes},
                                  {"alone_s", "alone", Show::seconds},
                                  {"beside_s", "beside", Show::seconds},
                                  {"lost_s", "core lost", Show::seconds},
                                  {"fitted_lost_s", "fitted", Show::seconds}}});
}

void add_in_situ(Report& report, const Calibration& made) {
    if (made.in_situ.empty()) return;
    Json rows = Json::array();
    for (const calibrate::CheckedStep& row : made.in_situ) {
        rows.push_back({{"model", row.model},
                        {"plan", row.plan},
                        {"predicted_s", row.predicted.value},
                        {"measured_s", row.measured.value},
                        {"error", row.error()},
                        {"noise", row.noise}});
    }
    report.document["in_situ"] = rows;
    report.tables.push_back({"in_situ",
                             "whole training steps",
                             {{"model", "model"},
                              {"plan", "plan"},
                              {"predicted_s", "predicted", Show::seconds},
                              {"measured_s", "measured", Show::seconds},
                              {"error", "error", Show::percent},
                              {"noise", "noise", Show::percent}}});
}

}  // namespace

std::string messaging_line(std::string_view where, const Messaging& m) {
    std::string text;
    for (const MessagePiece& piece : m.pieces) {
        text += fmt::format("{}{}{} + bytes / {}", text.empty() ? "" : "; ",
                            piece.up_to.value > 0 ? fmt::format("up to {} ", to_string(piece.up_to)) : "",
                            to_string(piece.overhead), to_string(piece.rate));
    }
    if (m.pieces.empty())
        text = fmt::format("{} + bytes / {:.0f} % of the links", to_string(m.overhead.value), 100 * m.fraction.value);
    return fmt::format("a message {}: {}, ± {:.0f} %\n", where, text, 100 * m.error);
}

Report report_of(const Calibration& made, Json configuration) {
    const auto& [samples, host, in_situ, file, residuals] = made;
    Report report{document("calibration", std::move(configuration)), {}, ""};
    report.document["file"] = file;
    report.document["ranks"] = samples.ranks;
    report.document["samples"] = compute_rows(samples);
    report.tables = {{"samples",
                      fmt::format("measured on {} ranks at once", samples.ranks),
                      {{"problem", "problem"},
                       {"backend", "backend"},
                       {"alone_s", "by itself", Show::seconds},
                       {"median_s", "in a step", Show::seconds},
                       {"error", "spread", Show::percent},
                       {"flops_per_s", "rate", Show::flop_rate}}}};
    if (residuals) add_residuals(report, made);
    add_in_situ(report, made);
    const DeviceClass& core = host.classes.at(0);
    report.footer = fmt::format("a core: {} f32, {} of memory bandwidth, {} to start a kernel\n",
                                to_string(samples.figures.peak.median), to_string(core.memory_bandwidth.value),
                                to_string(core.launch.value));
    if (samples.messages) report.footer += messaging_line("between ranks of a host", host.inside);
    if (samples.across) report.footer += messaging_line("between hosts", host.across);
    if (!samples.messages && !samples.across)
        report.footer += "messages between ranks: not measured (start it with mpirun -n 2)\n";
    report.footer += fmt::format("kept in {}", file);
    const std::string& doubt = host.in_situ.doubt;
    report.document["warnings"] = doubt.empty() ? Json::array() : Json::array({doubt});
    if (!doubt.empty()) report.footer += fmt::format("\nwarning, marked in that file: {}", doubt);
    return report;
}

Json collective_row(const std::string& file, const calibrate::RoundTrip& trip) {
    const calibrate::CollectiveRow& row = trip.row;
    const Bandwidth algorithm = row.bytes / row.time;
    const std::optional<calibrate::RingRounds> rounds = calibrate::ring_rounds(row.kind, row.ranks);
    return {{"file", file},
            {"collective", row.kind},
            {"ranks", row.ranks},
            {"bytes", row.bytes.value},
            {"in_place", row.in_place},
            {"hosts", row.hosts},
            {"algorithm", row.algorithm},
            {"time_s", row.time.value},
            {"predicted_s", trip.predicted.value},
            {"error", trip.error()},
            {"algbw_bytes_per_s", algorithm.value},
            {"busbw_bytes_per_s", rounds ? algorithm.value * rounds->bus_factor() : 0}};
}

Table collective_table() {
    return {"collectives",
            "collectives",
            {{"collective", "collective"},
             {"ranks", "ranks", Show::count},
             {"hosts", "nodes", Show::count},
             {"algorithm", "algorithm"},
             {"bytes", "size", Show::bytes},
             {"in_place", "in place"},
             {"time_s", "time", Show::seconds},
             {"predicted_s", "predicted", Show::seconds},
             {"error", "error", Show::percent},
             {"algbw_bytes_per_s", "algbw B/s", Show::number},
             {"busbw_bytes_per_s", "busbw B/s", Show::number}}};
}

std::string residual_picture(const calibrate::Samples& samples, const Machine& host, const std::string& path) {
    picture::Chart chart;
    chart.title = fmt::format("Messages, {} ranks on {}", samples.ranks, samples.host);
    chart.subtitle = "dots: medians of rounds of a ring; lines: what predictions take";
    chart.x.title = "size of a message";
    chart.x.unit = picture::Unit::bytes;
    chart.y.title = "time";
    chart.y.unit = picture::Unit::seconds;
    chart.x.scale = chart.y.scale = picture::Scale::log;
    const auto add = [&](const std::string& where, const std::optional<calibrate::Messages>& measured,
                         const Messaging& messaging) {
        if (!measured) return;
        picture::Series dots{.name = where + ", measured", .line = false},
            line{.name = where + ", fitted", .dots = false};
        for (const auto& [size, times] : by_size(*measured)) {
            dots.points.push_back({size, calibrate::median(times)});
            line.points.push_back({size, fitted(messaging, size).value});
        }
        chart.series.push_back(std::move(dots));
        chart.series.push_back(std::move(line));
    };
    add("inside a host", samples.messages, host.inside);
    add("between hosts", samples.across, host.across);
    if (chart.series.empty()) throw InputError("--plot: no messages were measured: start it with mpirun -n 2");
    return picture::encoded(picture::xy_chart(chart), path);
}

}  // namespace rehearse::cli
