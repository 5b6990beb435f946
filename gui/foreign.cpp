// SPDX-License-Identifier: Apache-2.0
// Chrome trace events as PyTorch's Kineto and others write them: X, B with E, asynchronous b with e (S with F), flows
// s, t and f, each with its arguments; names and labels of processes, names of threads.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "core/error.hpp"
#include "gui/document.hpp"
#include "trace/chrome_sax.hpp"

namespace rehearse::gui {

namespace {

using picture::Activity;
using trace::ChromeElement;
using trace::FlatObject;

struct Cancelled {};

constexpr std::size_t most_argument_bytes = 300'000'000;

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return contains(text, word); });
}

// By the names that PyTorch, NCCL, cuDNN and MPI give.
Activity activity_named(std::string_view name, std::string_view category) {
    if (any_of(name, {"nccl", "c10d::", "allreduce", "all_reduce", "AllReduce", "all_gather", "reduce_scatter",
                      "MPI_All", "MPI_Bcast", "MPI_Reduce", "MPI_Barrier"})) {
        return any_of(name, {"SendRecv", "send", "recv"}) ? Activity::point_to_point : Activity::collective;
    }
    if (any_of(name, {"MPI_", "SendRecv"})) return Activity::point_to_point;
    if (any_of(category, {"gpu_memcpy", "gpu_memset"}) || any_of(name, {"DataLoader", "Memcpy"})) return Activity::io;
    if (any_of(name, {"optimizer", "Optimizer", "adam", "Adam", "sgd"})) return Activity::update;
    if (any_of(name, {"wgrad", "backward_weights"})) return Activity::backward_weights;
    if (any_of(name, {"dgrad", "Backward", "backward", "autograd"})) return Activity::backward_data;
    return category == "kernel" || contains(name, "forward") ? Activity::forward : Activity::other;
}

class Reader {
public:
    Reader(const std::string& path, const Progress& progress)
        : file_(path), progress_(progress), builder_(std::filesystem::path(path).filename().string(), true, 0) {}

    Document read() {
        Document document;
        document.path = file_.path();
        document.label = std::filesystem::path(file_.path()).filename().string();
        try {
            visit_chrome(file_, {.head = [](const FlatObject&) {},
                                 .element = [this](const ChromeElement& element) { take(element); }});
        } catch (const InputError& error) {
            pair_ends();
            if (builder_.events() == 0 || !contains(error.what(), "cut off")) throw;
            document.warning = fmt::format("{}; the {} events before it are shown", error.what(), builder_.events());
        }
        pair_ends();
        if (builder_.events() == 0) {
            throw InputError(file_.path() + ": a Chrome trace without one event that has a duration (X, or B with E)");
        }
        const auto warn = [&](const std::string& text) {
            if (text.empty()) return;
            document.warning += (document.warning.empty() ? "" : "; ") + text;
        };
        warn(left_out());
        if (argument_bytes_ > most_argument_bytes) {
            warn(fmt::format("{}: arguments of events beyond the first {} are left out", file_.path(),
                             to_string(Bytes{static_cast<double>(most_argument_bytes)})));
        }
        document.lanes = std::make_shared<picture::Lanes>(named(finished()));
        return document;
    }

private:
    // Ids are numbers, or texts as in Kineto's "Spans".
    std::int64_t id(const FlatObject& fields, std::string_view key) {
        if (const auto number = fields.whole(key)) return *number;
        const auto word = fields.text(key);
        if (!word) return 0;
        const auto [place, is_new] = words_.try_emplace(std::string{*word}, 1'000'000'000 + std::ssize(words_));
        if (is_new) rank_names_[place->second] = place->first;
        return place->second;
    }

    void take(const ChromeElement& element) {
        if (++elements_ % 65536 == 0 && progress_) {
            if (!progress_(static_cast<double>(file_.position()) / static_cast<double>(file_.size())))
                throw Cancelled{};
        }
        const auto phase = element.fields.text("ph");
        if (!phase) return;
        if (*phase == "M") return take_name(element);
        if (std::string_view{"XBEbeSFstf"}.find(*phase) == std::string_view::npos || phase->size() != 1) return;
        const double ts = element.fields.real("ts").value_or(NAN), dur = element.fields.real("dur").value_or(0);
        const auto kind = phase->front();
        if (!(std::abs(ts) < 9e15) || !(dur >= 0 && dur < 9e15)) {
            untimed_ += is_flow(kind) ? 0 : 1;
            return;
        }
        const auto start = static_cast<std::int64_t>(std::llround(ts * 1e3));
        if (is_flow(kind)) return take_flow(element, kind, start);
        const Track track{id(element.fields, "pid"),
                          is_asynchronous(kind) ? async_name(element.fields) : thread(element.fields)};
        Open event{start, std::string{element.fields.text("name").value_or("")}, category(element.fields),
                   element.args.lines()};
        if (kind == 'X') return add(track, std::llround(dur * 1e3), std::move(event));
        // Asynchronous ones end by their number, on whichever thread; the others in turn.
        const bool begins = kind == 'B' || kind == 'b' || kind == 'S';
        ends_[{track, is_asynchronous(kind) ? number_text(element.fields) : ""}].push_back({begins, std::move(event)});
    }

    // A file may have events in any order; an end is of the last begin before it that has none yet.
    void pair_ends() {
        for (auto& [of, ends] : ends_) {
            std::ranges::stable_sort(ends, {}, [](const End& end) { return end.event.start; });
            std::vector<Open> open;
            for (auto& [begins, event] : ends) {
                if (begins) {
                    open.push_back(std::move(event));
                } else if (open.empty()) {
                    ++without_begin_;
                } else {
                    Open begun = std::move(open.back());
                    open.pop_back();
                    if (!event.arguments.empty())
                        begun.arguments += (begun.arguments.empty() ? "" : "\n") + std::move(event.arguments);
                    add(of.first, event.start - begun.start, std::move(begun));
                }
            }
            without_end_ += std::ssize(open);
        }
        ends_.clear();
    }

    // "3 events are left out: 1 whose time or duration is negative or no number, 2 that begin and do not end".
    std::string left_out() const {
        std::string parts;
        const auto say = [&](std::int64_t count, const char* which) {
            if (count > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, which);
        };
        say(untimed_, "without a time that is a number, or with a negative duration");
        say(without_end_, "that begin and do not end");
        say(without_begin_, "that end and do not begin");
        const std::int64_t all = untimed_ + without_end_ + without_begin_;
        return parts.empty()
                   ? ""
                   : fmt::format("{}: {} event{} left out: {}", file_.path(), all, all == 1 ? " is" : "s are", parts);
    }

    struct Track {
        std::int64_t process;
        std::string name;
        auto operator<=>(const Track&) const = default;
    };
    struct Open {
        std::int64_t start;
        std::string name, category, arguments;
    };
    struct End {
        bool begins;
        Open event;
    };

    static bool is_flow(char phase) { return phase == 's' || phase == 't' || phase == 'f'; }
    static bool is_asynchronous(char phase) { return phase == 'b' || phase == 'e' || phase == 'S' || phase == 'F'; }
    static std::string category(const FlatObject& fields) { return std::string{fields.text("cat").value_or("")}; }
    std::string thread(const FlatObject& fields) { return fmt::format("{}", id(fields, "tid")); }
    static std::string async_name(const FlatObject& fields) { return "asynchronous " + category(fields); }
    // Ids are compared as text: "0x1", 1.
    static std::string number_text(const FlatObject& fields) {
        if (const auto number = fields.whole("id")) return fmt::format("{}", *number);
        return std::string{fields.text("id").value_or("")};
    }

    // A flow binds to the event of its thread that lasts at its time; its end without "bp": "e" to the next one.
    void take_flow(const ChromeElement& element, char phase, std::int64_t at) {
        const std::string key = category(element.fields) + '\n' + number_text(element.fields);
        const std::int64_t flow = flows_.try_emplace(key, std::ssize(flows_) + 1).first->second;
        const bool next = phase == 'f' && element.fields.text("bp").value_or("") != "e";
        const Track track{id(element.fields, "pid"), thread(element.fields)};
        pending_.push_back({track, at, flow, next});
    }

    void take_name(const ChromeElement& element) {
        const auto what = element.fields.text("name");
        if (!what) return;
        const std::int64_t process = id(element.fields, "pid");
        if (const auto labels = element.args.text("labels"); labels && *what == "process_labels") {
            labels_[process] = *labels;
        }
        const auto name = element.args.text("name");
        if (!name) return;
        if (*what == "process_name") rank_names_[process] = *name;
        if (*what == "thread_name") thread_names_[{process, thread(element.fields)}] = *name;
    }

    void add(const Track& track, std::int64_t duration, Open event) {
        const Activity activity = activity_named(event.name, event.category);
        const auto lane = builder_.lane(track.process, Stream::compute, track.name);
        builder_.add(lane, event.start, duration,
                     builder_.what({std::move(event.name), "", std::move(event.category), 0, 0, 0, activity}));
        if (event.arguments.empty()) return;
        argument_bytes_ += event.arguments.size();
        if (argument_bytes_ <= most_argument_bytes) builder_.set_arguments(lane, std::move(event.arguments));
    }

    // Where a thread has no events, there is nothing that a flow could go through.
    picture::Lanes finished() {
        for (const auto& [track, at, flow, next] : pending_) {
            builder_.bind_flow(builder_.lane(track.process, Stream::compute, track.name), at, flow, next);
        }
        return builder_.finish();
    }

    picture::Lanes named(picture::Lanes lanes) const {
        lanes.rank_names = rank_names_;
        for (const auto& [process, labels] : labels_) {
            std::string& name = lanes.rank_names[process];
            name = name.empty() ? labels : fmt::format("{} ({})", name, labels);
        }
        std::int64_t before = -1;
        for (picture::Lane& lane : lanes.lanes) {
            const auto found = thread_names_.find({lane.rank, lane.name});
            if (found != thread_names_.end()) lane.name = found->second;
            lanes.ranks += lane.rank != before ? 1 : 0;
            lanes.rank_names.try_emplace(lane.rank, fmt::format("process {}", lane.rank));
            before = lane.rank;
        }
        return lanes;
    }

    trace::InputFile file_;
    const Progress& progress_;
    picture::LanesBuilder builder_;
    std::map<std::string, std::int64_t> words_;
    std::map<std::int64_t, std::string> rank_names_;
    std::map<std::int64_t, std::string> labels_;
    std::map<std::pair<std::int64_t, std::string>, std::string> thread_names_;
    std::map<std::pair<Track, std::string>, std::vector<End>> ends_;  // both ends of events that have two
    std::int64_t untimed_ = 0, without_end_ = 0, without_begin_ = 0;  // events that are not shown
    struct Flow {
        Track track;
        std::int64_t at, number;
        bool next;
    };
    std::vector<Flow> pending_;
    std::map<std::string, std::int64_t> flows_;  // by category and id
    std::size_t argument_bytes_ = 0;
    std::int64_t elements_ = 0;
};

}  // namespace

Document load_foreign(const std::string& path, const Progress& progress) {
    try {
        return Reader(path, progress).read();
    } catch (const Cancelled&) {
        throw InputError(path + ": reading was cancelled");
    }
}

}  // namespace rehearse::gui
