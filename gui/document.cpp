// SPDX-License-Identifier: Apache-2.0
#include "gui/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "trace/input_file.hpp"
#include "trace/perfetto_scan.hpp"
#include "trace/trace.hpp"

namespace rehearse::gui {

namespace {

using Json = nlohmann::json;

// Beyond so many events a timeline is kept as lanes only: a list of events with their texts takes five times as much.
constexpr std::size_t most_events = 2'000'000;

constexpr std::string_view what_is_right = "right would be a timeline, a prediction, benchmarks or a Chrome trace";

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

// A prediction or benchmarks, which are read as a whole; the text of a gzip file.
std::string small_file(const std::string& path) {
    constexpr std::size_t most = 500'000'000, piece = 1'000'000;
    trace::InputFile file(path, what_is_right);
    std::string text;
    std::streamsize got = file.size() > static_cast<std::int64_t>(most) ? 0 : 1;
    while (got > 0 && text.size() <= most) {
        const std::size_t before = text.size();
        text.resize(before + piece);
        got = file.stream().read(text.data() + before, piece).gcount();
        text.resize(before + static_cast<std::size_t>(got));
    }
    if (got == 0 && !text.empty()) return text;
    throw InputError(fmt::format("{} is too large for a prediction or benchmarks (at most {})", path,
                                 to_string(Bytes{static_cast<double>(most)})));
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

struct Repetitions {
    std::string name;
    std::vector<Benchmark> good, failed;
    std::optional<Benchmark> median;  // as the file has it
};

// Of repetitions the median, as rehearse bench prints it: of an even number the mean of the two in the middle. What was
// done in that time is the same in each, so that rates follow it.
Benchmark median_of(std::vector<Benchmark> repetitions) {
    std::ranges::stable_sort(repetitions, {}, &Benchmark::seconds);
    Benchmark row = repetitions[repetitions.size() / 2];
    if (repetitions.size() % 2 == 1) return row;
    const double median = (repetitions[repetitions.size() / 2 - 1].seconds + row.seconds) / 2;
    const double faster = median > 0 ? row.seconds / median : 1;
    for (double* rate : {&row.flops_per_s, &row.bytes_per_s, &row.peak_fraction}) *rate *= faster;
    row.seconds = median;
    return row;
}

// A row a benchmark. A repetition that failed took no time: the others count, and it is told of.
void take(Benchmarks& to, const std::vector<Repetitions>& all) {
    for (const Repetitions& each : all) {
        to.are_medians = to.are_medians || each.median || each.good.size() > 1;
        if (!each.median && each.good.empty()) {
            to.rows.push_back(each.failed.front());
            continue;
        }
        to.rows.push_back(each.median ? *each.median : median_of(each.good));
        if (each.failed.empty()) continue;
        to.left_out += fmt::format("{}{} of {} repetitions of {} failed and are left out: {}",
                                   to.left_out.empty() ? "" : "; ", each.failed.size(),
                                   each.failed.size() + each.good.size(), each.name, each.failed.front().error);
    }
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
    std::vector<Repetitions> all;
    for (const Json& row : rows_of(document, "benchmarks")) {
        const bool aggregate = text(row, "run_type") == "aggregate";
        if (aggregate && text(row, "aggregate_name") != "median") continue;
        const std::string unit = text(row, "time_unit");
        const double scale = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
        const double median = number(row, "median_s");  // of rehearse bench; others have a mean only
        result.are_medians = result.are_medians || median > 0;
        std::string name = text(row, aggregate && row.contains("run_name") ? "run_name" : "name");
        const Benchmark benchmark{name,
                                  median > 0 ? median : number(row, "real_time") * scale,
                                  number(row, "flop/s"),
                                  number(row, "B/s"),
                                  number(row, "peak_fraction"),
                                  text(row, "error_message")};
        auto known = std::ranges::find(all, name, &Repetitions::name);
        if (known == all.end()) known = all.insert(known, {std::move(name), {}, {}, {}});
        const bool failed = row.value("error_occurred", Json(false)) == true || !benchmark.error.empty();
        if (aggregate) {
            known->median = benchmark;
        } else {
            (failed ? known->failed : known->good).push_back(benchmark);
        }
    }
    if (all.empty()) throw InputError(origin + ": no benchmarks in it");
    take(result, all);
    return result;
}

std::vector<Document> load(const std::string& path, const Progress& progress) {
    const std::string head = trace::InputFile(path, what_is_right).head(65536);
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
        if (const std::string& left_out = document.benchmarks->left_out; !left_out.empty())
            document.warning = fmt::format("{}: {}", path, left_out);
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
