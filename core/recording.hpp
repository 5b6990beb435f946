// SPDX-License-Identifier: Apache-2.0
// What a framework's profiler recorded of training steps on one rank: the operators that its program called, what they
// took on the device, and the collectives beside them. Times are whole nanoseconds of the recording's own clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace rehearse {

/// An outermost operator of the forward pass, a node of the backward pass, the optimizer's step, or the wait for
/// samples; kernels that no operator launched; idle time at either end of a step, which follows no operator of it.
struct RecordedCall {
    enum class Part : std::uint8_t { forward, backward, update, loader, idle };
    Part part = Part::forward;
    int step = 0;                         // index into Recording::steps
    std::uint32_t name = 0, shapes = 0;   // indices into Recording::texts
    std::int64_t sequence = -1;           // autograd's number: of a node, or of the next node when an operator begins
    std::int64_t start = 0, end = 0;      // on the host
    std::int64_t at = 0;                  // where the device begins with it; on the host `start`
    std::int64_t busy = 0;                // of its kernels on the device; of itself where the host computes. Of a wait
                                          // for samples beside a device: while that does nothing else
    std::int64_t gap = 0;                 // the device is idle before its kernels (the host after it), no collective
                                          // and no wait for samples going on
    std::int64_t data = 0, weights = 0;   // part of `busy` whose kernels name the gradient that they make
    std::uint32_t inner = 0, inners = 0;  // of a node: its operators in Recording::inner
};

/// "forward", "backward", "update", "load" or "idle": as passes of events are named.
std::string_view to_string(RecordedCall::Part part);

/// An operator inside a node of the backward pass.
struct RecordedInner {
    std::uint32_t name = 0, shapes = 0;
    std::int64_t busy = 0;
};

struct RecordedCollective {
    std::string kind;        // "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"
    Bytes bytes{};           // of the whole: what all_reduce sums, what all_gather ends with; 0: not recorded
    std::int64_t ranks = 0;  // 0: not recorded
    int step = 0;
    std::int64_t start = 0, end = 0;
    std::vector<std::int64_t> members{};  // the ranks themselves; empty: not recorded
};

struct RecordedCopies {
    std::string direction;  // "HtoD"
    std::int64_t count = 0;
    Bytes bytes{};  // of those that say it
    Seconds time{};
};

struct RecordedStep {
    std::int64_t start = 0, end = 0;
    std::int64_t exposed = 0;     // a collective goes on, and nothing is computed
    std::int64_t collective = 0;  // a collective goes on
    std::int64_t loader = 0;      // the program waits for samples, and the device does nothing
};

struct Recording {
    std::string path;
    std::int64_t rank = 0, ranks = 1;
    bool on_device = false;          // there are kernels; else the host computes
    bool marked = false;             // steps are those that the program marked, else those of a repetition
    std::vector<std::string> texts;  // names and shapes, each once; 0 is empty
    std::vector<RecordedStep> steps;
    std::vector<RecordedCall> calls;  // whole steps only, in the order of (step, start)
    std::vector<RecordedInner> inner;
    std::vector<RecordedCollective> collectives;  // likewise
    std::vector<RecordedCopies> copies;           // of all steps

    std::string_view name_of(const RecordedCall& call) const { return texts[call.name]; }
};

}  // namespace rehearse
