// SPDX-License-Identifier: Apache-2.0
#include "trace/recorded_steps.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace rehearse::trace {

namespace {

constexpr std::int64_t before_all = std::numeric_limits<std::int64_t>::min();

// Walks the events of one thread after the other, outer before inner.
class Nesting {
public:
    Nesting(RecordedEvents& events, CallTree& tree)
        : events_(events), tree_(tree), launches_(!events.kernels.empty()) {}

    void walk() {
        const auto before = [](const HostEvent& a, const HostEvent& b) {
            return std::tuple(a.thread, a.start, -a.end) < std::tuple(b.thread, b.start, -b.end);
        };
        if (!std::ranges::is_sorted(events_.host, before)) std::ranges::stable_sort(events_.host, before);
        for (; !events_.host.empty(); events_.host.pop_front()) take(events_.host.front());  // gigabytes: none is kept
        std::ranges::sort(tree_.by_external);
        std::ranges::sort(tree_.inner_by_external);
        std::ranges::sort(tree_.markers);
    }

private:
    void take(const HostEvent& event) {
        if (event.thread != thread_) {
            thread_ = event.thread;
            call_end_ = inner_end_ = before_all;
            around_ = -1;
        }
        if (event.role == Role::marker) {
            tree_.markers.emplace_back(event.start, event.end);
            return;
        }
        if (event.start >= call_end_) {
            if (starts_call(event)) {
                open(event);
            } else if (launches_ && event.role == Role::wrapper) {
                wrap(event);
            }
            return;
        }
        if (launches_ && event.external != 0) tree_.by_external.emplace_back(event.external, last_call());
        take_inner(event);
    }

    // Nodes of PyTorch before 1.8 have no function of the engine around them.
    bool starts_call(const HostEvent& event) const {
        if (event.role == Role::annotation) return false;
        if (event.role != Role::wrapper) return true;
        const std::string_view name = events_.texts.text(event.name);
        return name.find("Backward") != std::string_view::npos && name.find("::") == std::string_view::npos &&
               name.find(' ') == std::string_view::npos && name.find('.') == std::string_view::npos;
    }

    void wrap(const HostEvent& event) {
        while (around_ >= 0 && wrapper(around_).end <= event.start) around_ = wrapper(around_).around;
        tree_.wrappers.push_back(
            {event.start, event.end, event.sequence, event.external, event.name, event.shapes, event.thread, around_});
        around_ = static_cast<std::int32_t>(tree_.wrappers.size() - 1);
    }
    const Wrapper& wrapper(std::int32_t index) const { return tree_.wrappers[static_cast<std::size_t>(index)]; }

    void open(const HostEvent& event) {
        RecordedCall call;
        call.part = part_of(event);
        call.name = event.name;
        call.shapes = event.shapes;
        call.sequence = event.sequence;
        call.start = event.start;
        call.at = event.start;
        call.end = event.end;
        call.busy = event.end - event.start;
        call.inner = static_cast<std::uint32_t>(tree_.inner.size());
        tree_.calls.push_back(call);
        tree_.threads.push_back(event.thread);
        call_end_ = std::max(event.end, event.start + 1);
        inner_end_ = before_all;
        if (launches_ && event.external != 0) tree_.by_external.emplace_back(event.external, last_call());
    }

    static RecordedCall::Part part_of(const HostEvent& event) {
        switch (event.role) {
            case Role::loader:
                return RecordedCall::Part::loader;
            case Role::update:
                return RecordedCall::Part::update;
            case Role::node:
            case Role::wrapper:
                return RecordedCall::Part::backward;
            default:
                return RecordedCall::Part::forward;
        }
    }

    // Of a node, the operators that it calls itself.
    void take_inner(const HostEvent& event) {
        RecordedCall& call = tree_.calls.back();
        if (call.part != RecordedCall::Part::backward) return;
        if (event.start >= inner_end_ && event.role == Role::call) {
            tree_.inner.push_back({event.name, event.shapes, event.end - event.start});
            call.inners = static_cast<std::uint32_t>(tree_.inner.size()) - call.inner;
            inner_end_ = std::max(event.end, event.start + 1);
        }
        if (launches_ && event.external != 0 && event.start < inner_end_) {
            tree_.inner_by_external.emplace_back(event.external, static_cast<std::uint32_t>(tree_.inner.size() - 1));
        }
    }

    std::uint32_t last_call() const { return static_cast<std::uint32_t>(tree_.calls.size() - 1); }

    RecordedEvents& events_;
    CallTree& tree_;
    bool launches_;  // there are kernels, which ask for the operators that launched them
    std::uint32_t thread_ = 0;
    std::int64_t call_end_ = before_all, inner_end_ = before_all;
    std::int32_t around_ = -1;  // the last wrapper of the thread
};

// Starts of a repeating sequence of names at the end of the list: the longest that holds its period twice or more.
// The prefix function of Knuth, Morris and Pratt (1977) on the names backwards.
std::vector<std::size_t> repetition(const std::vector<std::uint32_t>& names) {
    const std::size_t n = names.size();
    std::vector<std::size_t> prefix(n, 0);
    const auto at = [&](std::size_t i) { return names[n - 1 - i]; };
    std::size_t longest = 0, period = 0;
    for (std::size_t i = 1; i < n; ++i) {
        std::size_t k = prefix[i - 1];
        while (k > 0 && at(i) != at(k)) k = prefix[k - 1];
        prefix[i] = k + (at(i) == at(k) ? 1 : 0);
        const std::size_t length = i + 1, p = length - prefix[i];
        if (length >= 2 * p) std::tie(longest, period) = std::pair(length, p);
    }
    std::vector<std::size_t> starts;
    if (period == 0) return starts;
    for (std::size_t i = n - longest / period * period; i < n; i += period) starts.push_back(i);
    return starts;
}

std::vector<std::int64_t> marked(const std::vector<std::pair<std::int64_t, std::int64_t>>& markers) {
    std::vector<std::int64_t> bounds;
    for (const auto& [start, end] : markers) bounds.push_back(start);
    bounds.push_back(markers.back().second);
    return bounds;
}

}  // namespace

CallTree call_tree(RecordedEvents& events) {
    CallTree tree;
    Nesting(events, tree).walk();
    std::deque<HostEvent>().swap(events.host);
    return tree;
}

Cover::Cover(std::vector<std::pair<std::int64_t, std::int64_t>> intervals) {
    std::ranges::sort(intervals);
    for (const auto& [start, end] : intervals) {
        if (end <= start) continue;
        if (!ends_.empty() && start <= ends_.back()) {
            ends_.back() = std::max(ends_.back(), end);
            continue;
        }
        starts_.push_back(start);
        ends_.push_back(end);
    }
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < starts_.size(); ++i) {
        sums_.push_back(sum);
        sum += ends_[i] - starts_[i];
    }
    sums_.push_back(sum);
}

std::int64_t Cover::within(std::int64_t start, std::int64_t end) const {
    const auto before = [&](std::int64_t time) {
        const auto after = std::ranges::upper_bound(starts_, time) - starts_.begin();
        if (after == 0) return std::int64_t{0};
        const auto i = static_cast<std::size_t>(after) - 1;
        return sums_[i] + std::min(time, ends_[i]) - starts_[i];
    };
    return end <= start ? 0 : before(end) - before(start);
}

std::vector<std::int64_t> step_bounds(const CallTree& tree, const Texts& texts) {
    if (!tree.markers.empty()) return marked(tree.markers);
    std::vector<const RecordedCall*> calls;
    for (const RecordedCall& call : tree.calls) calls.push_back(&call);
    std::ranges::sort(calls, {}, &RecordedCall::start);
    std::vector<std::int64_t> bounds;
    for (const RecordedCall* call : calls) {
        if (call->part != RecordedCall::Part::update || !texts.text(call->name).starts_with("Optimizer.step")) continue;
        if (bounds.empty()) bounds.push_back(calls.front()->start);
        bounds.push_back(call->end);
    }
    if (bounds.size() >= 2) return bounds;
    std::vector<std::uint32_t> names;
    for (const RecordedCall* call : calls) names.push_back(call->name);
    bounds.clear();
    for (const std::size_t i : repetition(names)) bounds.push_back(calls[i]->start);
    if (!bounds.empty()) bounds.push_back(calls.back()->end);
    return bounds;
}

}  // namespace rehearse::trace
