// SPDX-License-Identifier: Apache-2.0
// A recorded step's updates. For recorded_timeline.cpp alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "calibrate/recorded_calls.hpp"

namespace rehearse::calibrate {

/// When a call began, ns, what the device waited before it included.
inline std::int64_t begin_of(const Recording& recording, const RecordedCall& call) {
    return recording.on_device ? call.at - call.gap : call.at;
}

/// The optimizer's calls of a step as one, as the schedule has them: where its step is (the longest, of several), the
/// others beside it. What lay between them and it closes up, so that nothing overlaps and the step is as long as
/// before. Gradients are set to zero at the loop's start, before the backward pass or after the step, as the program
/// has it.
class Updates {
public:
    explicit Updates(const StepCalls& step) {
        std::pair<bool, std::int64_t> best{false, -1};
        for (std::size_t i = 0; i < step.calls; ++i) {
            const RecordedCall& call = step.call(i);
            if (call.part != RecordedCall::Part::update) continue;
            const std::int64_t length = call.busy + call.gap;
            calls_.push_back({begin_of(*step.recording, call), length});
            length_ += length;
            const std::pair fit{step.name(i).starts_with("Optimizer.step"), length};
            if (fit > best) best = fit, place_ = calls_.back().start;
        }
    }

    std::int64_t start() const { return moved(place_); }
    std::int64_t length() const { return length_; }

    /// Where what began at `time` begins now, ns.
    std::int64_t moved(std::int64_t time) const {
        std::int64_t by = 0;
        for (const Call& call : calls_) {
            if (call.start < place_ && call.start < time && time <= place_) by -= call.length;
            if (call.start > place_ && time > place_ && time < call.start) by += call.length;
        }
        return time + by;
    }

private:
    struct Call {
        std::int64_t start, length;
    };
    std::vector<Call> calls_;
    std::int64_t place_ = 0, length_ = 0;
};

}  // namespace rehearse::calibrate
