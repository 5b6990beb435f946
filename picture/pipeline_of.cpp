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

}  // namespace

PipelineDrawing pipeline_of(const Timeline& timeline, std::optional<int> iteration) {
    const int shown = iteration ? *iteration : iterations(timeline).middle;
    std::vector<const Event*> events;
    for (const Event& event : timeline.events) {
        if (event.iteration == shown) events.push_back(&event);
    }
    if (events.empty()) {
        throw InputError(fmt::format("'{}': no events in iteration {}", timeline.title, shown));
    }
    const Seconds begin = (*std::ranges::min_element(events, {}, &Event::start))->start;
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
        const Activity activity = apart ? activity_of(*event) : drawn_as(*event);
        const bool numbered = computes(activity) && activity != Activity::update;
        const bool goes_on = before != nullptr && event->rank == before->rank && event->stream == before->stream &&
                             event->micro_batch == before->micro_batch && computes(activity) &&
                             drawing.boxes.back().activity == activity;
        if (goes_on) {
            drawing.boxes.back().end = std::max(drawing.boxes.back().end, (event->end - begin).value);
        } else {
            drawing.boxes.push_back({drawing.lanes.size() - 1, (event->start - begin).value, (event->end - begin).value,
                                     activity, numbered ? event->micro_batch : -1, 0, ""});
        }
        before = event;
    }
    for (PipelineBox& box : drawing.boxes) {
        const std::string number = box.micro_batch < 0 ? "" : fmt::format(" of micro-batch {}", box.micro_batch);
        box.title = fmt::format("{}, {}{}: {}", drawing.lanes[box.lane], to_string(box.activity), number,
                                to_string(Seconds{box.end - box.start}));
    }
    return drawing;
}

}  // namespace rehearse::picture
