// SPDX-License-Identifier: Apache-2.0
// A timeline's events gathered into a pipeline's boxes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "core/iterations.hpp"
#include "picture/pipeline.hpp"

namespace rehearse::picture {

namespace {

// The two halves of the backward pass run in turn, layer by layer: to the eye they are one box.
Activity drawn_as(const Event& event) {
    const Activity activity = activity_of(event);
    return activity == Activity::backward_weights ? Activity::backward_data : activity;
}

// Whether the halves of a micro-batch's backward pass are separate phases (zero-bubble schedules): then a rank ends all
// layers' backward_data of a micro-batch before the first of its backward_weights.
bool halves_are_apart(const std::vector<const Event*>& events) {
    std::map<std::tuple<std::int64_t, int>, std::pair<double, double>> phases;  // end of data, start of weights
    bool any = false;
    for (const Event* event : events) {
        const Activity activity = activity_of(*event);
        const auto key = std::tuple{event->rank, event->micro_batch};
        if (activity == Activity::backward_data) {
            auto& phase = phases.try_emplace(key, 0, 1e300).first->second;
            phase.first = std::max(phase.first, event->end.value);
        } else if (activity == Activity::backward_weights) {
            auto& phase = phases.try_emplace(key, 0, 1e300).first->second;
            phase.second = std::min(phase.second, event->start.value);
            any = true;
        }
    }
    return any && std::ranges::all_of(phases, [](const auto& phase) {
               return phase.second.first <= phase.second.second * (1 + 1e-12);
           });
}

// Of the iteration. A shorter wait lies inside a pass, as that for the sums of a tensor group: the pass stays one box
// with its number, which is not busy meanwhile.
constexpr double longest_inside = 0.02;

struct Span {
    double start = 0, end = 0;
};

// Steps of one box may lie over each other: their time counts once.
void extend(PipelineBox& box, Span step) {
    *box.busy += std::max(step.end - std::max(step.start, box.end), 0.0);
    box.end = std::max(box.end, step.end);
}

// "rank 0, forward of micro-batch 3: 1.9 ms in 2.4 ms" where it waits inside.
std::string title_of(const PipelineBox& box, const std::string& lane) {
    const double length = box.end - box.start;
    const bool waits = *box.busy < length * (1 - 1e-9);
    return fmt::format("{}, {}{}: {}{}", lane, to_string(box.activity),
                       box.micro_batch < 0 ? "" : fmt::format(" of micro-batch {}", box.micro_batch),
                       to_string(Seconds{*box.busy}), waits ? " in " + to_string(Seconds{length}) : "");
}

// Workers of parameter servers drift apart: the iteration of the first rank that has it, and what all others do in that
// time, whichever iteration of theirs it is.
struct Cut {
    Seconds begin, end;
    std::vector<const Event*> events{};
};

Cut cut_of(const Timeline& timeline, int iteration) {
    Cut cut;
    for (const Event& event : timeline.events) {
        if (event.iteration == iteration) cut.events.push_back(&event);
    }
    if (cut.events.empty()) {
        throw InputError(fmt::format("'{}': no events in iteration {}", timeline.title, iteration));
    }
    const bool drifts = workers_of_servers(timeline).has_value();
    if (drifts) {
        const RankIndex first = (*std::ranges::min_element(cut.events, {}, &Event::rank))->rank;
        std::erase_if(cut.events, [&](const Event* event) { return event->rank != first; });
    }
    cut.begin = (*std::ranges::min_element(cut.events, {}, &Event::start))->start;
    cut.end = (*std::ranges::max_element(cut.events, {}, &Event::end))->end;
    if (!drifts) return cut;
    cut.events.clear();
    for (const Event& event : timeline.events) {
        if (event.start < cut.end && event.end > cut.begin) cut.events.push_back(&event);
    }
    return cut;
}

}  // namespace

PipelineDrawing pipeline_of(const Timeline& timeline, std::optional<int> iteration) {
    const int shown = iteration ? *iteration : iterations(timeline).middle;
    auto [begin, end, events] = cut_of(timeline, shown);
    const double longest_joined = longest_inside * (end - begin).value;
    std::ranges::stable_sort(events, [](const Event* a, const Event* b) {
        return std::tuple{a->rank, a->stream, a->start.value} < std::tuple{b->rank, b->stream, b->start.value};
    });
    const bool apart = halves_are_apart(events);
    PipelineDrawing drawing{timeline.title, "", {}, {}, true};
    const Event* before = nullptr;
    for (const Event* event : events) {
        if (before == nullptr || event->rank != before->rank) {
            drawing.lanes.push_back(fmt::format("rank {}", event->rank));
        }
        const Span step{(std::max(event->start, begin) - begin).value, (std::min(event->end, end) - begin).value};
        const Activity activity = apart ? activity_of(*event) : drawn_as(*event);
        const bool numbered = computes(activity) && activity != Activity::update;
        const bool goes_on = before != nullptr && event->rank == before->rank && event->stream == before->stream &&
                             event->micro_batch == before->micro_batch && computes(activity) &&
                             drawing.boxes.back().activity == activity &&
                             step.start - drawing.boxes.back().end <= longest_joined;
        if (goes_on) {
            extend(drawing.boxes.back(), step);
        } else {
            drawing.boxes.push_back({drawing.lanes.size() - 1, step.start, step.end, activity,
                                     numbered ? event->micro_batch : -1, 0, "", step.end - step.start});
        }
        before = event;
    }
    for (PipelineBox& box : drawing.boxes) box.title = title_of(box, drawing.lanes[box.lane]);
    return drawing;
}

}  // namespace rehearse::picture
