// SPDX-License-Identifier: Apache-2.0
// Chrome trace events as PyTorch's Kineto and others write them: X, and B with E; names of processes and threads.
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
            if (builder_.events() == 0 || !contains(error.what(), "cut off")) throw;
            document.warning = fmt::format("{}; the {} events before it are shown", error.what(), builder_.events());
        }
        if (builder_.events() == 0) {
            throw InputError(file_.path() + ": a Chrome trace without one event that has a duration (X, or B with E)");
        }
        document.lanes = std::make_shared<picture::Lanes>(named(builder_.finish()));
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
        if (*phase == "M") take_name(element);
        if (*phase != "X" && *phase != "B" && *phase != "E") return;
        const std::int64_t process = id(element.fields, "pid"), thread = id(element.fields, "tid");
        const double ts = element.fields.real("ts").value_or(NAN), dur = element.fields.real("dur").value_or(0);
        if (!(std::abs(ts) < 9e15) || !(dur >= 0 && dur < 9e15)) return;
        const auto start = static_cast<std::int64_t>(std::llround(ts * 1e3));
        const std::string name{element.fields.text("name").value_or("")};
        const std::string category{element.fields.text("cat").value_or("")};
        if (*phase == "X") return add(process, thread, start, std::llround(dur * 1e3), name, category);
        auto& open = open_[{process, thread}];
        if (*phase == "B") return open.push_back({start, name, category});
        if (open.empty()) return;  // an end whose begin was before the recording
        add(process, thread, open.back().start, start - open.back().start, open.back().name, open.back().category);
        open.pop_back();
    }

    void take_name(const ChromeElement& element) {
        const auto what = element.fields.text("name");
        const auto name = element.args.text("name");
        if (!what || !name) return;
        if (*what == "process_name") rank_names_[id(element.fields, "pid")] = *name;
        if (*what == "thread_name") {
            thread_names_[{id(element.fields, "pid"), fmt::format("{}", id(element.fields, "tid"))}] = *name;
        }
    }

    void add(std::int64_t process, std::int64_t thread, std::int64_t start, std::int64_t duration,
             const std::string& name, const std::string& category) {
        const Activity activity = activity_named(name, category);
        const auto lane = builder_.lane(process, Stream::compute, fmt::format("{}", thread));
        builder_.add(lane, start, duration, builder_.what({name, "", category, 0, 0, 0, activity}));
    }

    picture::Lanes named(picture::Lanes lanes) const {
        lanes.rank_names = rank_names_;
        std::int64_t before = -1;
        for (picture::Lane& lane : lanes.lanes) {
            const auto found = thread_names_.find({lane.rank, lane.name});
            if (found != thread_names_.end()) lane.name = found->second;
            lanes.ranks += lane.rank != before ? 1 : 0;
            before = lane.rank;
        }
        return lanes;
    }

    struct Open {
        std::int64_t start;
        std::string name, category;
    };
    trace::InputFile file_;
    const Progress& progress_;
    picture::LanesBuilder builder_;
    std::map<std::string, std::int64_t> words_;
    std::map<std::int64_t, std::string> rank_names_;
    std::map<std::pair<std::int64_t, std::string>, std::string> thread_names_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Open>> open_;
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
