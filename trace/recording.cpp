// SPDX-License-Identifier: Apache-2.0
#include "trace/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "trace/layout.hpp"
#include "trace/recorded_events.hpp"
#include "trace/recorded_steps.hpp"

namespace rehearse::trace {

namespace {

constexpr std::string_view right =
    "right would be a trace of PyTorch's profiler (torch.profiler, export_chrome_trace), of one rank, whole";

bool makes_weights(std::string_view kernel) {
    for (const std::string_view part : {"wgrad", "backward_filter", "bwd_filter", "BwdWeights", "bwd_wei", "_wrw"}) {
        if (kernel.find(part) != std::string_view::npos) return true;
    }
    return false;
}
bool makes_data(std::string_view kernel) {
    for (const std::string_view part : {"dgrad", "backward_data", "bwd_data", "BwdData", "igemm_bwd"}) {
        if (kernel.find(part) != std::string_view::npos) return true;
    }
    return false;
}

class Recorder {
public:
    Recorder(const std::string& path, RecordedEvents events) : events_(std::move(events)) {
        recording_.path = path;
        recording_.rank = events_.rank;
        recording_.ranks = events_.ranks;
        recording_.on_device = std::ranges::any_of(
            events_.kernels, [](const Kernel& kernel) { return kernel.kind == Kernel::Kind::compute; });
    }

    Recording record() {
        tree_ = call_tree(events_);
        if (tree_.calls.empty()) fail("it has no operator: only kernels, or no profiler of PyTorch wrote it");
        bounds_ = step_bounds(tree_, events_.texts);
        recording_.marked = !tree_.markers.empty();
        if (bounds_.size() < 2) fail("no training step: no ProfilerStep#N, and no sequence of operators that repeats");
        recording_.steps.resize(bounds_.size() - 1);
        for (std::size_t i = 0; i + 1 < bounds_.size(); ++i) {
            recording_.steps[i] = {bounds_[i], bounds_[i + 1]};
        }
        for (RecordedCall& call : tree_.calls) call.step = step_at(call.start);
        if (recording_.on_device) {
            take_kernels();
        } else {
            take_host();
        }
        finish();
        return std::move(recording_);
    }

private:
    using Span = std::pair<std::int64_t, std::int64_t>;
    using Spans = std::vector<Span>;
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();

    [[noreturn]] void fail(std::string_view what) const {
        throw InputError(fmt::format("{}: {}: {}", recording_.path, what, right));
    }

    int step_at(std::int64_t time) const {
        const auto after = std::ranges::upper_bound(bounds_, time) - bounds_.begin();
        return after == 0 || after == std::ssize(bounds_) ? -1 : static_cast<int>(after) - 1;
    }

    // --- where the host computes
    void take_host() {
        Spans moving, busy;
        for (const HostCollective& each : events_.collectives) moving.emplace_back(each.start, each.end);
        const Cover collectives(moving);
        std::vector<RecordedCall*> calls;
        for (RecordedCall& call : tree_.calls) {
            calls.push_back(&call);
            busy.emplace_back(call.start, call.end);
        }
        std::ranges::sort(calls, {}, &RecordedCall::start);
        std::int64_t reached = never;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            RecordedCall& call = *calls[i];
            reached = std::max(reached, call.end);
            if (call.step < 0) continue;
            RecordedStep& step = recording_.steps[static_cast<std::size_t>(call.step)];
            if (call.part == RecordedCall::Part::loader) step.loader += call.busy;
            const std::int64_t limit = step.end;
            const std::int64_t next = i + 1 < calls.size() ? std::min(calls[i + 1]->start, limit) : limit;
            if (next > reached) call.gap = next - reached - collectives.within(reached, next);
        }
        set_waits(moving, busy);
        for (const HostCollective& each : events_.collectives) {
            add_collective({std::string{events_.texts.text(each.kind)}, whole_of(each), recording_.ranks,
                            step_at(each.start), each.start, each.end});
        }
    }

    // gloo and MPI record what a rank gives.
    Bytes whole_of(const HostCollective& each) const {
        const bool gathers = events_.texts.text(each.kind) == "all_gather";
        return Bytes{static_cast<double>(each.bytes) * static_cast<double>(gathers ? recording_.ranks : 1)};
    }

    // Exposed: while something moves or computes, less while something computes.
    void set_waits(const Spans& moving, const Spans& busy) {
        const Cover collectives(moving), computing(busy), either(both(moving, busy));
        for (RecordedStep& step : recording_.steps) {
            step.collective = collectives.within(step.start, step.end);
            step.exposed = either.within(step.start, step.end) - computing.within(step.start, step.end);
        }
    }

    static Spans both(Spans a, const Spans& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    }

    void add_collective(RecordedCollective collective) {
        if (collective.step >= 0) recording_.collectives.push_back(std::move(collective));
    }

    // --- where a device computes
    static std::optional<std::uint32_t> found(const std::vector<std::pair<std::int64_t, std::uint32_t>>& list,
                                              std::int64_t id) {
        const auto place = std::ranges::lower_bound(list, id, {}, &std::pair<std::int64_t, std::uint32_t>::first);
        if (id == 0 || place == list.end() || place->first != id) return std::nullopt;
        return place->second;
    }

    // By the operator's number, else by the call of the runtime that launched it.
    std::optional<std::uint32_t> call_of(const Kernel& kernel) const {
        if (const auto call = found(tree_.by_external, kernel.external)) return call;
        const auto launch = std::ranges::lower_bound(events_.launches, kernel.correlation, {}, &Launch::correlation);
        if (kernel.correlation == 0 || launch == events_.launches.end() || launch->correlation != kernel.correlation)
            return std::nullopt;
        const std::int64_t start = launch->start;
        const auto of_thread = by_thread_.find(launch->thread);
        if (of_thread == by_thread_.end()) return std::nullopt;
        const std::vector<std::uint32_t>& calls = of_thread->second;
        const auto after =
            std::ranges::upper_bound(calls, start, {}, [&](std::uint32_t call) { return tree_.calls[call].start; });
        if (after == calls.begin() || tree_.calls[*std::prev(after)].end < start) return std::nullopt;
        return *std::prev(after);
    }

    void index_launches() {
        std::ranges::sort(events_.launches, {}, &Launch::correlation);
        for (std::uint32_t i = 0; i < tree_.calls.size(); ++i) {
            by_thread_[tree_.threads[i]].push_back(i);
            tree_.calls[i].busy = 0;
        }
        for (RecordedInner& each : tree_.inner) each.busy = 0;
    }

    void take_kernels() {
        index_launches();
        std::ranges::sort(events_.kernels, {}, &Kernel::start);
        Spans moving, busy;
        for (const Kernel& kernel : events_.kernels) {
            (kernel.kind == Kernel::Kind::collective ? moving : busy).emplace_back(kernel.start, kernel.end);
        }
        const Cover waits(both(moving, loading()));
        std::int64_t reached = events_.kernels.front().start;
        Spans of_steps(recording_.steps.size(), {never, never});
        int before = -1;
        for (const Kernel& kernel : events_.kernels) {
            const auto call = call_of(kernel);
            const int step = call ? tree_.calls[*call].step : before;
            if (step >= 0) extend(of_steps[static_cast<std::size_t>(step)], kernel);
            if (kernel.kind == Kernel::Kind::collective) {
                add_collective(collective_of(kernel, step));
                continue;
            }
            before = step;
            const std::int64_t idle = std::max<std::int64_t>(0, kernel.start - reached);
            const std::int64_t gap = idle - waits.within(reached, kernel.start);
            const std::int64_t own = std::max<std::int64_t>(0, kernel.end - std::max(kernel.start, reached));
            reached = std::max(reached, kernel.end);
            add_kernel(kernel, call, own, gap);
        }
        set_device_steps(of_steps);
        set_waits(moving, busy);
        take_loading(both(moving, busy));
    }

    // From the first kernel that computes to the end of the last one of all.
    static void extend(Span& step, const Kernel& kernel) {
        auto& [begin, end] = step;
        if (begin == never && kernel.kind != Kernel::Kind::collective) begin = kernel.start;
        end = std::max(end, kernel.end);
    }

    RecordedCollective collective_of(const Kernel& kernel, int step) const {
        RecordedCollective made{std::string{events_.texts.text(kernel.collective)},
                                Bytes{static_cast<double>(kernel.bytes)},
                                kernel.ranks == 0 ? recording_.ranks : kernel.ranks,
                                step,
                                kernel.start,
                                kernel.end,
                                ranks_in(events_.texts.text(kernel.members))};
        if (std::ssize(made.members) != made.ranks) made.members.clear();
        return made;
    }

    // While the host waits for samples.
    Spans loading() const {
        Spans spans;
        for (const RecordedCall& call : tree_.calls) {
            if (call.part == RecordedCall::Part::loader) spans.emplace_back(call.start, call.end);
        }
        return spans;
    }

    // A wait for samples takes what the device has nothing else to do meanwhile.
    void take_loading(const Spans& occupied) {
        const Cover others(occupied), all(both(occupied, loading()));
        for (RecordedCall& call : tree_.calls) {
            if (call.part != RecordedCall::Part::loader) continue;
            const std::int64_t alone = call.end - call.start - others.within(call.start, call.end);
            if (call.busy == 0) call.at = call.end - alone;
            call.busy += alone;
        }
        for (RecordedStep& step : recording_.steps) {
            step.loader = all.within(step.start, step.end) - others.within(step.start, step.end);
        }
    }

    void add_kernel(const Kernel& kernel, std::optional<std::uint32_t> call, std::int64_t own, std::int64_t gap) {
        if (kernel.kind == Kernel::Kind::copy) add_copy(kernel);
        if (!call) {
            recording_.orphans += own;
            return;
        }
        RecordedCall& of = tree_.calls[*call];
        if (of.busy == 0) of.at = kernel.start;
        of.busy += own;
        of.gap += gap;
        const std::string_view name = events_.texts.text(kernel.name);
        if (makes_weights(name)) of.weights += own;
        if (makes_data(name)) of.data += own;
        if (const auto inner = found(tree_.inner_by_external, kernel.external)) tree_.inner[*inner].busy += own;
    }

    void add_copy(const Kernel& kernel) {
        const std::string_view name = events_.texts.text(kernel.name);
        const std::string direction{direction_of(name)};
        RecordedCopies& copies = copies_[direction];
        copies.direction = direction;
        ++copies.count;
        copies.bytes += Bytes{static_cast<double>(kernel.bytes)};
        copies.time += Seconds{static_cast<double>(kernel.end - kernel.start) * 1e-9};
    }

    // A step of the device lasts from its first kernel to the next one's; the last one as long as anything of it does.
    void set_device_steps(const Spans& of_steps) {
        for (std::size_t i = 0; i < recording_.steps.size(); ++i) {
            RecordedStep& step = recording_.steps[i];
            const auto& [begin, end] = of_steps[i];
            if (begin == never) fail(fmt::format("step {} has no kernel whose operator is known", i + 1));
            step.start = begin;
            step.end = i + 1 < recording_.steps.size() ? of_steps[i + 1].first : std::max(end, step.end);
        }
    }

    void finish() {
        std::erase_if(tree_.calls, [](const RecordedCall& call) { return call.step < 0; });
        std::ranges::stable_sort(tree_.calls, [](const RecordedCall& a, const RecordedCall& b) {
            return std::pair(a.step, a.start) < std::pair(b.step, b.start);
        });
        std::ranges::sort(recording_.collectives, {}, &RecordedCollective::start);
        recording_.calls = std::move(tree_.calls);
        recording_.inner = std::move(tree_.inner);
        for (auto& [direction, copies] : copies_) recording_.copies.push_back(copies);
        recording_.texts = events_.texts.taken();
        if (recording_.calls.empty()) fail("no operator lies inside a training step");
    }

    RecordedEvents events_;
    CallTree tree_;
    std::vector<std::int64_t> bounds_;
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_thread_;
    std::map<std::string, RecordedCopies> copies_;
    Recording recording_;
};

}  // namespace

Recording read_recording(const std::string& path) {
    RecordedEvents events;
    {
        InputFile file(path, right);
        events = read_events(file);
    }
    return Recorder(path, std::move(events)).record();
}

Timeline timeline_of(const Recording& recording) {
    Timeline timeline{
        .title = recording.path, .measured = true, .ranks = recording.ranks, .events = {}, .counters = {}};
    const std::int64_t origin = recording.steps.front().start;
    const auto event = [&](std::int64_t start, std::int64_t end, int iteration, Stream stream) {
        Event made;
        made.rank = RankIndex{recording.rank};
        made.stream = stream;
        made.iteration = iteration;
        made.start = from_ns(start - origin);
        made.end = from_ns(end - origin);
        return made;
    };
    for (const RecordedCall& call : recording.calls) {
        if (recording.on_device && call.busy == 0) continue;  // it launched nothing, or waited beside other work
        const std::int64_t end = recording.on_device ? call.at + call.busy : call.end;
        Event made =
            event(call.at, end, call.step, call.part == RecordedCall::Part::loader ? Stream::io : Stream::compute);
        made.step = recording.name_of(call);
        made.pass = to_string(call.part);
        timeline.events.push_back(std::move(made));
    }
    for (const RecordedCollective& each : recording.collectives) {
        Event made = event(each.start, each.end, each.step, Stream::communication);
        made.step = made.pass = each.kind;
        made.bytes = each.bytes;
        timeline.events.push_back(std::move(made));
    }
    sort_events(timeline);
    return timeline;
}

}  // namespace rehearse::trace
