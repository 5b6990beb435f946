// SPDX-License-Identifier: Apache-2.0
// Reads what chrome_writer.cpp wrote.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "trace/chrome_sax.hpp"
#include "trace/formats.hpp"
#include "trace/layout.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

namespace {

class ChromeReader {
public:
    explicit ChromeReader(InputFile& file) : file_(file) {}

    std::vector<Timeline> read() {
        visit_chrome(file_, {.head = [this](const FlatObject& head) { take_head(head); },
                             .element = [this](const ChromeElement& element) { take(element); }});
        if (timelines_.empty()) file_.is_not_a_trace("a Chrome trace without a timeline of ours");
        for (Timeline& timeline : timelines_) sort_events(timeline);
        return std::move(timelines_);
    }

private:
    [[noreturn]] void broken(std::string_view what) { file_.is_broken(file_.position(), what); }

    template <typename T>
    T need(std::optional<T> value, std::string_view key) {
        if (!value) broken(fmt::format("\"{}\" is missing or of the wrong kind", key));
        return *value;
    }

    void take_head(const FlatObject& head) {
        if (head.text("schema") != schema) return;
        is_ours_ = true;
        shift_ = need(head.whole("shift_ns"), "shift_ns");
    }

    void take(const ChromeElement& element) {
        if (!is_ours_) {
            throw OtherProgram(fmt::format(
                "{}: not a trace of Rehearse: a Chrome trace of another program (no schema {} before the first event): "
                "right would be a file that rehearse wrote, or a trace of PyTorch's profiler where one is asked for",
                file_.path(), schema));
        }
        const std::string_view phase = need(element.fields.text("ph"), "ph");
        if (phase == "M") take_metadata(element);
        if (phase == "X") timeline_of(element).events.push_back(event_of(element));
        if (phase == "C") add_point(element);
    }

    void take_metadata(const ChromeElement& element) {
        const std::string_view name = need(element.fields.text("name"), "name");
        const FlatObject& args = element.args;
        if (name == "rehearse_timeline") {
            if (need(args.whole("timeline"), "timeline") != static_cast<std::int64_t>(timelines_.size())) {
                broken("timelines are not in order");
            }
            Timeline& timeline = timelines_.emplace_back();
            timeline.title = need(args.text("title"), "title");
            timeline.measured = need(args.whole("measured"), "measured") != 0;
            timeline.ranks = need(args.whole("ranks"), "ranks");
        } else if (name == "process_name") {
            const std::int64_t number = need(args.whole("timeline"), "timeline");
            if (number < 0 || number >= std::ssize(timelines_)) broken("a process of a timeline that is not there");
            processes_[need(element.fields.whole("pid"), "pid")] = static_cast<std::size_t>(number);
        } else if (name == "rehearse_counter") {
            timeline_of(element).counters.push_back(
                {std::string{need(args.text("name"), "name")}, std::string{need(args.text("unit"), "unit")}, {}});
        } else if (name == "rehearse_link") {
            timeline_of(element).links.push_back(
                {std::string{need(args.text("name"), "name")}, std::string{need(args.text("kind"), "kind")},
                 need(args.whole("links"), "links"), Bandwidth{need(args.real("capacity"), "capacity")},
                 Bytes{need(args.real("bytes"), "bytes")}, Bytes{need(args.real("most"), "most")}});
        }
    }

    Timeline& timeline_of(const ChromeElement& element) {
        const auto process = processes_.find(need(element.fields.whole("pid"), "pid"));
        if (process == processes_.end()) broken("an event of a process that has no name yet");
        return timelines_[process->second];
    }

    // Microseconds with three decimals are whole nanoseconds again; exact below 2^53 ns, 104 days.
    std::int64_t ns_of(const FlatObject& fields, std::string_view key) {
        const double ns = need(fields.real(key), key) * 1e3;
        if (!(ns >= 0 && ns < 9e18)) broken(fmt::format("\"{}\" is out of range", key));
        return std::llround(ns);
    }

    Seconds time_of(std::int64_t ns) {
        const auto time = from_file_ns(ns, shift_);
        if (!time) broken("a time is out of range");
        return *time;
    }

    Event event_of(const ChromeElement& element) {
        const FlatObject& args = element.args;
        const std::int64_t start = ns_of(element.fields, "ts"), duration = ns_of(element.fields, "dur");
        Event event;
        event.start = time_of(start);
        if (duration > 9'000'000'000'000'000'000 - start) broken("\"dur\" is out of range");
        event.end = time_of(start + duration);
        event.step = need(element.fields.text("name"), "name");
        const auto stream = stream_named(need(element.fields.text("cat"), "cat"));
        if (!stream) broken("\"cat\" is no stream of ours");
        event.stream = *stream;
        event.rank = RankIndex{need(args.whole("rank"), "rank")};
        if (args.has("layer")) event.layer = need(args.text("layer"), "layer");
        if (args.has("pass")) event.pass = need(args.text("pass"), "pass");
        event.micro_batch = small(args, "micro_batch");
        event.iteration = small(args, "iteration");
        if (args.has("bytes")) event.bytes = Bytes{need(args.real("bytes"), "bytes")};
        if (args.has("flops")) event.flops = Flops{need(args.real("flops"), "flops")};
        if (args.has("flow")) event.flow = need(args.whole("flow"), "flow");
        return event;
    }

    int small(const FlatObject& args, std::string_view key) {
        const std::int64_t value = need(args.whole(key), key);
        if (!std::in_range<int>(value)) broken(fmt::format("\"{}\" is out of range", key));
        return static_cast<int>(value);
    }

    void add_point(const ChromeElement& element) {
        Timeline& timeline = timeline_of(element);
        const std::int64_t number = need(element.fields.whole("counter"), "counter");
        if (number < 0 || number >= std::ssize(timeline.counters)) broken("a value of a counter that is not described");
        timeline.counters[static_cast<std::size_t>(number)].points.emplace_back(
            time_of(ns_of(element.fields, "ts")), need(element.args.real("value"), "value"));
    }

    InputFile& file_;
    bool is_ours_ = false;
    std::int64_t shift_ = 0;
    std::vector<Timeline> timelines_;
    std::unordered_map<std::int64_t, std::size_t> processes_;  // pid -> timeline
};

}  // namespace

std::vector<Timeline> read_chrome(InputFile& file) { return ChromeReader(file).read(); }

}  // namespace rehearse::trace
