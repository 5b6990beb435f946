// SPDX-License-Identifier: Apache-2.0
#include "gui/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "trace/perfetto_scan.hpp"
#include "trace/trace.hpp"

namespace rehearse::gui {

namespace {

using Json = nlohmann::json;

// Beyond so many events a timeline is kept as lanes only: a list of events with their texts takes five times as much.
constexpr std::size_t most_events = 2'000'000;

std::string head_of(const std::string& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) throw InputError(path + ": it is a directory");
    std::ifstream file(path, std::ios::binary);
    if (!file) throw InputError(fmt::format("{}: cannot read: {}", path, std::generic_category().message(errno)));
    std::string head(65536, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    if (head.empty()) throw InputError(path + ": the file is empty");
    return head;
}

Json parsed(const std::string& json, const std::string& origin) {
    try {
        return Json::parse(json);
    } catch (const Json::parse_error& error) {
        const bool short_of = error.byte >= json.size();
        throw InputError(short_of ? fmt::format("{}: cut off at byte {}: its JSON does not end", origin, json.size())
                                  : fmt::format("{}: broken at byte {}: {}", origin, error.byte, error.what()));
    } catch (const Json::exception& error) {  // a number that no double holds
        throw InputError(fmt::format("{}: cannot be read: {}", origin, error.what()));
    }
}

double number(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// A prediction or benchmarks, which are read as a whole.
std::string small_file(const std::string& path) {
    constexpr std::uintmax_t most = 500'000'000;
    std::error_code error;
    if (const auto size = std::filesystem::file_size(path, error); !error && size > most) {
        throw InputError(fmt::format("{}: {} is too large for a prediction or benchmarks (at most {})", path,
                                     to_string(Bytes{static_cast<double>(size)}),
                                     to_string(Bytes{static_cast<double>(most)})));
    }
    return read_file(path);
}

std::vector<Json> rows_of(const Json& document, const char* key) {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_array()) return {};
    return {found->begin(), found->end()};
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string label_of(const std::string& path, bool measured) {
    return fmt::format("{} ({})", file_name(path), measured ? "measured" : "predicted");
}

// As a list of events, too; what is said of all of them is found here, in the thread that reads.
void keep(Document& document, Timeline timeline) {
    document.summary = summarize(timeline);
    document.timeline = std::make_shared<Timeline>(std::move(timeline));
}

// A Perfetto file of one timeline goes into lanes without a list of its events, in a tenth of the reader's time.
// Nothing when it is not regular: the reader says what is wrong with it.
std::optional<Document> scanned(const std::string& path, const Progress& progress) {
    std::optional<picture::LanesBuilder> builder;
    std::vector<std::uint32_t> whats;
    std::vector<std::size_t> lane_of;  // by track, one more than the lane
    Document document;
    document.path = path;
    const trace::ScanVisitor visitor{
        .head =
            [&](const Timeline& head) {
                builder.emplace(head.title, head.measured, head.ranks);
                document.label = label_of(path, head.measured);
            },
        .what =
            [&](const Event& event) {
                whats.push_back(builder->what({event.step, event.layer, event.pass, event.micro_batch,
                                               event.bytes.value, event.flops.value, picture::activity_of(event)}));
            },
        .event =
            [&](const trace::ScannedEvent& event) {
                if (lane_of.size() <= event.track) lane_of.resize(event.track + 1, 0);
                std::size_t& lane = lane_of[event.track];
                if (lane == 0) lane = 1 + builder->lane(event.rank, event.stream, std::string{to_string(event.stream)});
                builder->add(lane - 1, event.start, event.end - event.start, whats[event.what], event.iteration,
                             event.flow);
            },
        .counter = [&](Counter counter) { builder->add(std::move(counter)); },
        .link = [&](LinkUse use) { builder->add(std::move(use)); },
        .progress = progress,
        .dependencies = [&](Dependencies dependencies) { builder->add(std::move(dependencies)); }};
    if (!trace::scan_perfetto(path, visitor) || !builder) return std::nullopt;
    document.lanes = std::make_shared<picture::Lanes>(builder->finish());
    if (document.lanes->size() <= most_events) keep(document, picture::timeline_of(*document.lanes));
    return document;
}

std::vector<Document> timelines_of(const std::string& path, const Progress& progress) {
    if (auto document = scanned(path, progress)) return {std::move(*document)};
    std::vector<Document> documents;
    for (Timeline& timeline : trace::read_all(path)) {
        Document& document = documents.emplace_back();
        document.path = path;
        document.label = label_of(path, timeline.measured);
        document.lanes = std::make_shared<picture::Lanes>(picture::lanes_of(timeline));
        if (timeline.events.size() <= most_events) keep(document, std::move(timeline));
    }
    return documents;
}

// Of repetitions under one name their median, as rehearse bench prints it: of an even number the mean of the two in the
// middle. What was done in that time is the same in each, so that rates follow it.
Benchmarks medians(Benchmarks all) {
    std::vector<Benchmark> rows;
    std::vector<std::vector<Benchmark>> of_name;
    for (Benchmark& row : all.rows) {
        const auto known = std::ranges::find(rows, row.name, &Benchmark::name);
        const auto place = static_cast<std::size_t>(known - rows.begin());
        if (known == rows.end()) rows.push_back(row), of_name.emplace_back();
        of_name[place].push_back(std::move(row));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::vector<Benchmark>& repetitions = of_name[i];
        std::ranges::stable_sort(repetitions, {}, &Benchmark::seconds);
        rows[i] = repetitions[repetitions.size() / 2];
        if (repetitions.size() % 2 == 1) continue;
        const double median = (repetitions[repetitions.size() / 2 - 1].seconds + rows[i].seconds) / 2;
        const double faster = median > 0 ? rows[i].seconds / median : 1;
        for (double* rate : {&rows[i].flops_per_s, &rows[i].bytes_per_s, &rows[i].peak_fraction}) *rate *= faster;
        rows[i].seconds = median;
    }
    all.rows = std::move(rows);
    return all;
}

}  // namespace

Prediction parse_prediction(const std::string& json, const std::string& origin) {
    return report::prediction_of(parsed(json, origin), origin);
}

Benchmarks parse_benchmarks(const std::string& json, const std::string& origin) {
    const Json document = parsed(json, origin);
    Benchmarks result;
    if (const auto context = document.find("context"); context != document.end()) {
        result.host = text(*context, "host_name");
        result.date = text(*context, "date");
        for (const Json& roof : rows_of(*context, "roofs")) {
            const bool slope = roof.contains("B/s");
            const double rate = number(roof, slope ? "B/s" : "flop/s");
            if (rate > 0) result.roofs.push_back({text(roof, "name"), rate, slope, true});
        }
    }
    for (const Json& row : rows_of(document, "benchmarks")) {
        if (text(row, "run_type") == "aggregate" && text(row, "aggregate_name") != "median") continue;
        const std::string unit = text(row, "time_unit");
        const double scale = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
        const double median = number(row, "median_s");  // of rehearse bench; others have a mean only
        result.are_medians = result.are_medians || median > 0;
        result.rows.push_back({text(row, "name"), median > 0 ? median : number(row, "real_time") * scale,
                               number(row, "flop/s"), number(row, "B/s"), number(row, "peak_fraction"),
                               text(row, "error_message")});
    }
    if (result.rows.empty()) throw InputError(origin + ": no benchmarks in it");
    return medians(std::move(result));
}

std::vector<Document> load(const std::string& path, const Progress& progress) {
    const std::string head = head_of(path);
    const bool has_label = path.find('#') != std::string::npos && !std::filesystem::exists(path);
    const auto has = [&](const char* word) { return head.find(word) != std::string::npos; };
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    const bool json = first != std::string::npos && (head[first] == '{' || head[first] == '[') && !has_label;
    if (!json) return timelines_of(path, progress);
    Document document;
    document.path = path;
    document.label = file_name(path);
    if (has("\"rehearse.prediction/")) {
        document.prediction = std::make_shared<Prediction>(parse_prediction(small_file(path), path));
        return {document};
    }
    if (has("\"rehearse.timeline/")) return timelines_of(path, progress);
    if (has("\"benchmarks\"") && !has("\"traceEvents\"")) {
        document.benchmarks = std::make_shared<Benchmarks>(parse_benchmarks(small_file(path), path));
        return {document};
    }
    if (has("\"rehearse.")) {
        throw InputError(path +
                         ": JSON of Rehearse, but none that is shown here: right would be a prediction, a "
                         "timeline or benchmarks");
    }
    return {load_foreign(path, progress)};
}

}  // namespace rehearse::gui
