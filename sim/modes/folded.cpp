// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/folded.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/modes/fold.hpp"

namespace rehearse::sim {

Prediction simulate_folded(const KindSteps& steps, const Wiring& wiring, Collectives& collectives, int iterations,
                           bool links) {
    Traffic traffic{wiring};
    Calls calls{steps, wiring, collectives, links ? &traffic : nullptr};
    Fold fold{steps, collectives, calls, links ? &traffic : nullptr};
    fold.run();
    std::vector<std::vector<Event>> by_class;
    Seconds length;
    std::size_t count = 0;
    for (std::size_t c = 0; c < steps.count(); ++c) {
        by_class.push_back(fold.events(static_cast<int>(c)));
        count += by_class.back().size();
        for (const Event& event : by_class.back()) length = std::max(length, event.end);
    }
    Prediction prediction{.timeline = {}, .mode = Mode::folded, .flows = fold.flows() * iterations};
    prediction.timeline.events.reserve(count * static_cast<std::size_t>(iterations));
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const Seconds origin = static_cast<double>(iteration) * length;
        for (std::vector<Event>& events : by_class) {
            for (Event& event : events) {
                Event here = iteration + 1 == iterations ? std::move(event) : event;
                here.iteration = iteration;
                here.start += origin;
                here.end += origin;
                if (here.flow != 0) here.flow += iteration * fold.arrows();
                prediction.timeline.events.push_back(std::move(here));
            }
        }
    }
    if (links) traffic.report(prediction.timeline, iterations, length);
    return prediction;
}

Prediction simulate_folded(const Steps& steps, const Wiring& wiring, int iterations, std::int64_t followed_messages) {
    Collectives collectives{steps.schedule().mesh, wiring, followed_messages};
    const Kinds kinds = kinds_of(steps, wiring);
    return simulate_folded(KindSteps{steps, kinds, wiring}, wiring, collectives, iterations, false);
}

Seconds folded_step(const KindSteps& steps, const Wiring& wiring, Collectives& collectives) {
    Calls calls{steps, wiring, collectives, nullptr};
    Fold fold{steps, collectives, calls, nullptr};
    fold.run();
    return fold.length();
}

}  // namespace rehearse::sim
