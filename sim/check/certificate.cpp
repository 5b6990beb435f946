// SPDX-License-Identifier: Apache-2.0
#include "sim/check/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "core/index.hpp"
#include "core/methods/servers.hpp"
#include "sim/check/bounds.hpp"
#include "sim/check/link_certificate.hpp"
#include "sim/check/nic_needs.hpp"
#include "sim/check/refuse.hpp"
#include "sim/check/server_certificate.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/in_switch.hpp"
#include "sim/modes/alike.hpp"
#include "sim/network/storage.hpp"

namespace rehearse::sim {

namespace {

// Steps of one class in one iteration: when the first of its ranks began, and when the last ended.
struct Span {
    Seconds start{1e300}, end{-1e300};
    Bytes sent;
    std::int64_t ranks = 0;
};

class Certifier {
public:
    Certifier(const Steps& steps, const Wiring& wiring, Seconds slack)
        : steps_(steps), wiring_(wiring), nics_(steps, wiring), slack_(slack) {
        for (const RankClass& rank_class : steps.schedule().classes) {
            auto& streams = streams_.emplace_back();
            for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
                streams[rank_class.steps[i].stream].push_back(i);
            }
            alike_.push_back(first_alike(rank_class.steps));
        }
    }

    /// Events of one rank in one iteration, in order of their starts.
    void rank(std::span<const Event> events) {
        const int c = steps_.class_of(events.front().rank);
        const std::vector<Step>& program = steps_.schedule().classes[at(c)].steps;
        std::map<Stream, std::size_t> next;
        when_.assign(program.size(), nullptr);
        for (const Event& event : events) {
            const std::vector<std::size_t>& order = streams_[at(c)][event.stream];
            std::size_t& done = next[event.stream];
            if (done == order.size() || program[order[done]].name != event.step) {
                refuse(fmt::format("{} is not the next step of {}", name(event), to_string(event.stream)));
            }
            when_[order[done++]] = &event;
        }
        if (events.size() != program.size()) refuse(fmt::format("rank {} skips steps", events.front().rank));
        const std::vector<Seconds>& least = least_times(c, wiring_.device_class(events.front().rank));
        std::map<Stream, const Event*> before;
        Seconds needed;
        for (std::size_t i = 0; i < program.size(); ++i) {
            const Event& event = *when_[i];
            for (const int other : program[i].after) follows(event, *when_[at(other)], slack_);
            const Event*& last = before[event.stream];
            if (last != nullptr) follows(event, *last, slack_);
            last = &event;
            const int alike = alike_[at(c)][i];
            if (alike >= 0) {
                at_least(event, least[at(alike)], "peak rate or memory allow", slack_);
                needed += least[at(alike)];
            }
            takes_its_time(program[i].action, event);
        }
        bounds_.compute = std::max(bounds_.compute, needed);
        own_bytes(c, program);
        for (std::size_t i = 0; i < program.size(); ++i) {
            if (std::holds_alternative<Load>(program[i].action)) widened(spans_[c][i], *when_[i]);
        }
    }

    /// After all ranks of an iteration.
    void iteration() {
        for (auto& [c, spans] : spans_) {
            const std::vector<Step>& program = steps_.schedule().classes[at(c)].steps;
            Seconds row_start, row_end{-1e300}, needed, all;
            for (const std::size_t i : by_start(c, [&](std::size_t step) { return spans[step].start; })) {
                const auto& communicate = std::get<Communicate>(program[i].action);
                const Span& span = spans[i];
                all_sent(c, communicate, span, program[i].name);
                if (span.start > row_end + slack_) {
                    row_start = span.start;
                    needed = {};
                }
                const Seconds nics = nics_.time(c, communicate);
                needed += nics;
                all += nics;
                row_end = std::max(row_end, span.end);
                if (row_end - row_start < needed * (1 - rounding) - slack_) {
                    refuse(fmt::format("{} and the collectives before it take {} where NICs need {}", program[i].name,
                                       to_string(row_end - row_start), to_string(needed)));
                }
            }
            bounds_.wire = std::max(bounds_.wire, all);
            loads(c);
        }
        spans_.clear();
    }

    const Trades& trades() const { return trades_; }
    const Bounds& bounds() const { return bounds_; }

private:
    /// By step of a class, of the first of those that are alike.
    const std::vector<Seconds>& least_times(int c, const DeviceClass& device) {
        const auto [entry, fresh] = least_.try_emplace({c, &device});
        if (!fresh) return entry->second;
        const std::vector<Step>& program = steps_.schedule().classes[at(c)].steps;
        for (std::size_t i = 0; i < program.size(); ++i) {
            const bool first = alike_[at(c)][i] == static_cast<int>(i);
            entry->second.push_back(first ? least_time(*problem_of(program[i]), device) * steps_.pace().fastest
                                          : Seconds{});
        }
        return entry->second;
    }

    /// What is no computation.
    void takes_its_time(const Action& action, const Event& event) {
        if (const auto* send = std::get_if<Send>(&action)) {
            hops_.clear();
            PerByte slowest;
            const std::int64_t apart = send->offset * stride(steps_.schedule().mesh, send->axis);
            const Seconds latency = wiring_.route(event.rank, event.rank + apart, hops_);
            for (const Hop& hop : hops_) slowest = std::max(slowest, hop.cost);
            at_least(event, latency + slowest * send->bytes, "its slowest link", slack_);
        } else if (const auto* push_pull = std::get_if<PushPull>(&action)) {
            trades_well(*push_pull, event);
        } else if (const auto* load = std::get_if<Load>(&action)) {
            const StorageTier& tier = storage_tier(wiring_.machine(), load->tier);
            const Bandwidth most = most_of_tier(wiring_, tier, TierUse::read, wiring_.node_of(event.rank));
            at_least(event, load->bytes / most, "its storage tier and the NICs of its node", slack_);
        }
    }

    /// There, the server's work, and back.
    void trades_well(const PushPull& push_pull, const Event& event) {
        ++trades_[{event.iteration, push_pull.bucket}];
        const std::int64_t device = device_of_server(steps_.schedule(), push_pull.server);
        if (push_pull.group >= 0 && place_on(steps_.schedule().mesh, push_pull.group, event.rank) != 0) return;
        Seconds least;
        for (const Problem& problem : push_pull.work) least += least_time(problem, wiring_.device_class(device));
        const Bytes each = size_of(push_pull.type);
        const auto transfer = [&](std::int64_t from, std::int64_t to, std::int64_t elements) {
            if (from == to) return;
            hops_.clear();
            PerByte slowest;
            least += wiring_.route(from, to, hops_);
            for (const Hop& hop : hops_) slowest = std::max(slowest, hop.cost);
            least += slowest * (each * static_cast<double>(elements));
        };
        transfer(event.rank, device, push_pull.sent);
        transfer(device, event.rank, push_pull.received);
        at_least(event, least, "its way to the server and back", slack_);
    }

    static Span& widened(Span& span, const Event& event) {
        span.start = std::min(span.start, event.start);
        span.end = std::max(span.end, event.end);
        return span;
    }

    /// A class's collectives, of all its communicators, as they begin.
    template <typename Start>
    std::vector<std::size_t> by_start(int c, const Start& start) const {
        std::vector<std::size_t> steps;
        for (const auto& [stream, of_stream] : streams_[at(c)]) {
            if (is_communicator(stream)) steps.insert(steps.end(), of_stream.begin(), of_stream.end());
        }
        const std::vector<Step>& program = steps_.schedule().classes[at(c)].steps;
        std::erase_if(steps, [&](std::size_t i) { return !std::holds_alternative<Communicate>(program[i].action); });
        std::ranges::stable_sort(steps, {}, start);
        return steps;
    }

    // Back-to-back collectives of one rank: some began before the event before them had ended on the last rank.
    void own_bytes(int c, const std::vector<Step>& program) {
        Seconds row_start, row_end{-1e300};
        Bytes row, all;
        std::vector<Span>& spans = spans_[c];
        spans.resize(program.size());
        for (const std::size_t i : by_start(c, [&](std::size_t step) { return when_[step]->start; })) {
            const Event& event = *when_[i];
            Span& span = widened(spans[i], event);
            span.sent += event.bytes;
            ++span.ranks;
            if (event.start > row_end + slack_) {
                row_start = event.start;
                row = {};
            }
            row += event.bytes;
            all += event.bytes;
            row_end = std::max(row_end, event.end);
            if (!(row > Bytes{})) continue;
            const Seconds least = row / wiring_.egress(event.rank);
            if (row_end - row_start >= least * (1 - rounding) - slack_) continue;
            refuse(
                fmt::format("{} is faster than all links of its device together: {}", name(event), to_string(least)));
        }
        if (all > Bytes{}) bounds_.wire = std::max(bounds_.wire, all / wiring_.egress(when_.front()->rank));
    }

    /// What all ranks of a class read in one step comes out of one tier, and into their nodes.
    void loads(int c) {
        const std::vector<Step>& program = steps_.schedule().classes[at(c)].steps;
        Seconds all;
        for (std::size_t i = 0; i < program.size(); ++i) {
            const auto* load = std::get_if<Load>(&program[i].action);
            if (load == nullptr) continue;
            const StorageTier& tier = storage_tier(wiring_.machine(), load->tier);
            const Seconds least =
                static_cast<double>(steps_.ranks_of(c).size()) * load->bytes / nics_.most_into(c, tier);
            const Span& span = spans_[c][i];
            if (span.end - span.start < least * (1 - rounding) - slack_) {
                refuse(fmt::format("{} takes {} where '{}' and the NICs of all nodes need {}", program[i].name,
                                   to_string(span.end - span.start), tier.name, to_string(least)));
            }
            if (!tier.per_node) all += least;
        }
        bounds_.wire = std::max(bounds_.wire, all);
    }

    void all_sent(int c, const Communicate& communicate, const Span& span, const std::string& step) {
        const std::int64_t groups = nics_.groups(c, communicate.axis);
        const std::int64_t size = rehearse::size_of(steps_.schedule().mesh, communicate.axis);
        if (span.ranks != groups * size) return;  // some are not shown
        const Bytes least =
            static_cast<double>(groups) * least_sent(call_of(communicate), steps_.schedule().mesh, wiring_);
        if (span.sent >= least * (1 - rounding)) return;
        refuse(fmt::format("{} sends {} where {} must move", step, to_string(span.sent), to_string(least)));
    }

    const Steps& steps_;
    const Wiring& wiring_;
    NicNeeds nics_;
    Seconds slack_;
    Bounds bounds_;
    std::vector<std::map<Stream, std::vector<std::size_t>>> streams_;  // by class: steps of each stream
    std::vector<std::vector<int>> alike_;                              // by class: first_alike
    std::map<std::pair<int, const DeviceClass*>, std::vector<Seconds>> least_;
    std::vector<const Event*> when_;                      // by step, of one rank
    std::map<int, std::vector<Span>> spans_;              // by class and step, of one iteration
    std::map<std::pair<int, int>, std::int64_t> trades_;  // by iteration and bucket
    std::vector<Hop> hops_;
};

}  // namespace

Bounds certify(const Timeline& timeline, const Steps& steps, const Wiring& wiring) {
    const std::vector<Event>& events = timeline.events;
    const Seconds slack = length(timeline) * 1e-9 + Seconds{1e-12};
    Certifier certifier{steps, wiring, slack};
    for (std::size_t first = 0; first < events.size();) {
        std::size_t last = first;
        const auto same = [&](const Event& e) {
            return e.rank == events[first].rank && e.iteration == events[first].iteration;
        };
        while (last < events.size() && same(events[last])) ++last;
        if (events[first].rank < steps.ranks()) certifier.rank(std::span{events}.subspan(first, last - first));
        if (last == events.size() || events[last].iteration != events[first].iteration) certifier.iteration();
        first = last;
    }
    if (steps.schedule().methods.get<Servers>().count > 0)
        certify_servers(events, steps, wiring, certifier.trades(), slack);
    certify_links(timeline);
    return certifier.bounds();
}

}  // namespace rehearse::sim
