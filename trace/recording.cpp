// SPDX-License-Identifier: Apache-2.0
#include "trace/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"
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

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();

// A step of a device: from the first kernel that computes to the end of the last one of all.
void extend_step(std::pair<std::int64_t, std::int64_t>& step, const Kernel& kernel) {
    auto& [begin, end] = step;
    if (begin == never && kernel.kind != Kernel::Kind::collective) begin = kernel.start;
    end = std::max(end, kernel.end);
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
        std::vector<RecordedCall> idle;
        std::int64_t reached = never;
        int before = -1;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            RecordedCall& call = *calls[i];
            const std::int64_t reached_before = std::exchange(reached, std::max(reached, call.end));
            if (call.step < 0) continue;
            RecordedStep& step = recording_.steps[static_cast<std::size_t>(call.step)];
            if (call.part == RecordedCall::Part::loader) step.loader += call.busy;
            if (std::exchange(before, call.step) != call.step) {
                const std::int64_t begin = std::max(step.start, reached_before);
                const std::int64_t gap = call.start - begin - collectives.within(begin, call.start);
                if (gap > 0) idle.push_back(idle_call("before the first operator", call.step, begin, gap));
            }
            const std::int64_t limit = step.end;
            const std::int64_t next = i + 1 < calls.size() ? std::min(calls[i + 1]->start, limit) : limit;
            if (next > reached) call.gap = next - reached - collectives.within(reached, next);
        }
        tree_.calls.insert(tree_.calls.end(), idle.begin(), idle.end());
        set_waits(moving, busy);
        for (const HostCollective& each : events_.collectives) {
            add_collective({std::string{events_.texts.text(each.kind)}, whole_of(each), recording_.ranks,
                            step_at(each.start), each.start, each.end});
        }
    }

    // The program itself, and what the profiler does not record.
    RecordedCall idle_call(std::string_view name, int step, std::int64_t start, std::int64_t gap) {
        RecordedCall made;
        made.part = RecordedCall::Part::idle;
        made.step = step;
        made.name = events_.texts.number(name);
        made.start = made.at = start;
        made.end = start + gap;
        made.gap = gap;
        return made;
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

    const Launch* launch_of(const Kernel& kernel) const {
        const auto launch = std::ranges::lower_bound(events_.launches, kernel.correlation, {}, &Launch::correlation);
        const bool known = kernel.correlation != 0 && launch != events_.launches.end();
        return known && launch->correlation == kernel.correlation ? &*launch : nullptr;
    }

    // The innermost one that launched it, likewise.
    std::optional<std::uint32_t> wrapper_of(const Kernel& kernel) const {
        if (const auto wrapper = found(wrapper_by_external_, kernel.external)) return wrapper;
        const Launch* const launch = launch_of(kernel);
        if (launch == nullptr) return std::nullopt;
        const auto after =
            std::ranges::upper_bound(tree_.wrappers, std::pair(launch->thread, launch->start), {},
                                     [](const Wrapper& each) { return std::pair(each.thread, each.start); });
        auto index = static_cast<std::int32_t>(after - tree_.wrappers.begin()) - 1;
        const auto at = [&](std::int32_t i) -> const Wrapper& { return tree_.wrappers[static_cast<std::size_t>(i)]; };
        if (index >= 0 && at(index).thread != launch->thread) return std::nullopt;
        while (index >= 0 && at(index).end < launch->start) index = at(index).around;
        if (index < 0) return std::nullopt;
        return static_cast<std::uint32_t>(index);
    }

    // A kernel that no operator launched is a call by itself: of what did launch it, as one call, else by its own name.
    std::uint32_t own_call(const Kernel& kernel, int step) {
        const auto wrapper = wrapper_of(kernel);
        const auto next = static_cast<std::uint32_t>(tree_.calls.size());
        if (wrapper) {
            const auto [known, fresh] = call_of_wrapper_.try_emplace(*wrapper, next);
            if (!fresh) return known->second;
        }
        RecordedCall& made = tree_.calls.emplace_back();
        made.step = step;
        made.name = kernel.name;
        made.start = made.end = made.at = kernel.start;
        if (const Launch* const launch = launch_of(kernel)) made.start = made.end = launch->start;
        if (!wrapper) return next;
        const Wrapper& of = tree_.wrappers[*wrapper];
        made.name = of.name;
        made.shapes = of.shapes;
        made.sequence = of.sequence;
        made.start = of.start;
        made.end = of.end;
        return next;
    }

    // By the operator's number, else by the call of the runtime that launched it.
    std::optional<std::uint32_t> call_of(const Kernel& kernel) const {
        if (const auto call = found(tree_.by_external, kernel.external)) return call;
        const Launch* const launch = launch_of(kernel);
        if (launch == nullptr) return std::nullopt;
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
        for (std::uint32_t i = 0; i < tree_.wrappers.size(); ++i)
            if (tree_.wrappers[i].external != 0) wrapper_by_external_.emplace_back(tree_.wrappers[i].external, i);
        std::ranges::sort(wrapper_by_external_);
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
        std::vector<std::int64_t> heads(recording_.steps.size(), 0);  // idle before each step's first kernel
        int before = -1;
        for (const Kernel& kernel : events_.kernels) {
            const auto call = call_of(kernel);
            const Launch* const launch = call ? nullptr : launch_of(kernel);
            const int step = call ? tree_.calls[*call].step : launch != nullptr ? step_at(launch->start) : before;
            const bool first = step >= 0 && of_steps[static_cast<std::size_t>(step)].first == never;
            if (step >= 0) extend_step(of_steps[static_cast<std::size_t>(step)], kernel);
            if (kernel.kind == Kernel::Kind::collective) {
                add_collective(collective_of(kernel, step));
                continue;
            }
            before = step;
            const std::int64_t idle = std::max<std::int64_t>(0, kernel.start - reached);
            const std::int64_t gap = idle - waits.within(reached, kernel.start);
            const std::int64_t own = std::max<std::int64_t>(0, kernel.end - std::max(kernel.start, reached));
            reached = std::max(reached, kernel.end);
            if (first) heads[static_cast<std::size_t>(step)] = gap;
            add_kernel(kernel, call ? *call : own_call(kernel, step), own, gap);
        }
        set_device_steps(of_steps);
        add_tail(of_steps.back().second, heads.back());
        set_waits(moving, busy);
        take_loading(both(moving, busy));
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

    // What the last step is longer than its kernels. The device waits as long before the next step's first one, which
    // of the last step only the wait before its own tells: no step has both.
    void add_tail(std::int64_t reached, std::int64_t head) {
        const std::int64_t end = recording_.steps.back().end;
        const std::int64_t tail = end - reached - Cover(loading()).within(reached, end) - head;
        if (tail <= 0) return;
        const auto last = static_cast<int>(recording_.steps.size()) - 1;
        RecordedCall made = idle_call("after the last operator", last, end, tail);
        made.at = reached + tail;
        tree_.calls.push_back(made);
    }

    void add_kernel(const Kernel& kernel, std::uint32_t call, std::int64_t own, std::int64_t gap) {
        if (kernel.kind == Kernel::Kind::copy) add_copy(kernel);
        RecordedCall& of = tree_.calls[call];
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
    std::vector<std::pair<std::int64_t, std::uint32_t>> wrapper_by_external_;  // ascending
    std::map<std::uint32_t, std::uint32_t> call_of_wrapper_;
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

}  // namespace rehearse::trace
