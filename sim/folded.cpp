// SPDX-License-Identifier: Apache-2.0
#include "sim/folded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "sim/collectives.hpp"

namespace rehearse::sim {

namespace {

[[noreturn]] void not_yet(const Step& step, std::string_view what) {
    throw InputError(fmt::format("step '{}': folded mode cannot yet price {}; use --mode exact", step.name, what));
}

// One class's streams, worked through in order.
class ClassProgram {
public:
    ClassProgram(const Steps& steps, int rank_class, Collectives& collectives)
        : steps_(steps),
          rank_class_(rank_class),
          collectives_(collectives),
          of_class_(steps.schedule().classes[static_cast<std::size_t>(rank_class)]) {}

    /// Events of one iteration that starts at 0.
    std::vector<Event> run() {
        std::vector<Event> events;
        for (std::size_t i = 0; i < of_class_.steps.size(); ++i) {
            const Step& step = of_class_.steps[i];
            const auto stream = static_cast<std::size_t>(step.stream);
            Seconds needed;
            for (const int before : step.after) needed = std::max(needed, events[static_cast<std::size_t>(before)].end);
            Event event = steps_.event(rank_class_, static_cast<int>(i));
            event.rank = steps_.first_rank(rank_class_);
            event.start = std::max(needed, free_[stream]);
            event.end = end_of(step, static_cast<int>(i), needed, event);
            free_[stream] = event.end;
            events.push_back(std::move(event));
        }
        return events;
    }

private:
    Seconds end_of(const Step& step, int index, Seconds needed, Event& event) {
        if (const auto* bucket = std::get_if<AllReduceBucket>(&step.action)) {
            if (std::ranges::count(steps_.schedule().class_axes, bucket->axis) > 0) {
                not_yet(step, "a collective between rank classes");
            }
            event.bytes = collectives_.sent(call_of(*bucket), event.rank);
            return collective(*bucket, static_cast<std::size_t>(step.stream), needed);
        }
        if (std::holds_alternative<Send>(step.action) || std::holds_alternative<Recv>(step.action)) {
            not_yet(step, "point-to-point messages");
        }
        const Seconds end = event.start + steps_.slowest(rank_class_, index);
        Collectives::occupy(progress_[static_cast<std::size_t>(step.stream)], end);
        return end;
    }

    // Ranks that ended the stream's last collective early enter this one early. The other classes' groups do the same
    // at the same time, so that they share the fabric.
    Seconds collective(const AllReduceBucket& bucket, std::size_t stream, Seconds needed) {
        Collectives::Progress& progress = progress_[stream];
        progress.ready.resize(static_cast<std::size_t>(steps_.ranks()), free_[stream].value);
        collectives_.run(call_of(bucket), needed, progress);
        double last = 0;
        for (std::int64_t rank = 0; rank < steps_.ranks(); ++rank) {
            if (steps_.class_of(rank) != rank_class_) continue;
            last = std::max(last, progress.ready[static_cast<std::size_t>(rank)]);
        }
        return Seconds{last};
    }

    const Steps& steps_;
    int rank_class_;
    Collectives& collectives_;
    const RankClass& of_class_;
    std::array<Seconds, 3> free_;                    // by stream
    std::array<Collectives::Progress, 3> progress_;  // by stream
};

std::int64_t messages(const Schedule& schedule, Collectives& collectives) {
    std::int64_t count = 0;
    for (const RankClass& rank_class : schedule.classes) {
        for (const Step& step : rank_class.steps) {
            const auto* bucket = std::get_if<AllReduceBucket>(&step.action);
            if (bucket != nullptr) count += collectives.messages(call_of(*bucket));
        }
    }
    return count / static_cast<std::int64_t>(schedule.classes.size());
}

}  // namespace

Prediction simulate_folded(const Steps& steps, const Wiring& wiring, int iterations, std::int64_t followed_messages) {
    const Schedule& schedule = steps.schedule();
    Collectives collectives{schedule.mesh, wiring, followed_messages};
    Prediction prediction{.timeline = {}, .mode = Mode::folded, .flows = 0};
    std::vector<std::vector<Event>> by_class;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        by_class.push_back(ClassProgram{steps, static_cast<int>(c), collectives}.run());
        std::ranges::stable_sort(by_class.back(), {}, &Event::start);
    }
    std::vector<Seconds> ends(by_class.size());
    for (int iteration = 0; iteration < iterations; ++iteration) {
        for (std::size_t c = 0; c < by_class.size(); ++c) {
            const Seconds origin = ends[c];
            for (Event event : by_class[c]) {
                event.iteration = iteration;
                event.start += origin;
                event.end += origin;
                ends[c] = std::max(ends[c], event.end);
                prediction.timeline.events.push_back(std::move(event));
            }
        }
    }
    prediction.flows = messages(schedule, collectives) * iterations;
    return prediction;
}

}  // namespace rehearse::sim
