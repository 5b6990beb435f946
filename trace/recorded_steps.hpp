// SPDX-License-Identifier: Apache-2.0
// From events to calls: which operator is inside which, what each took, and which training step it belongs to.
#pragma once

#include <vector>

#include "core/recording.hpp"
#include "trace/recorded_events.hpp"

namespace rehearse::trace {

/// What the program has around operators under a name of its own: torch.autograd.Function, a compiled region.
struct Wrapper {
    std::int64_t start = 0, end = 0, sequence = -1, external = 0;
    std::uint32_t name = 0, shapes = 0, thread = 0;
    std::int32_t around = -1;  // the wrapper that it is in, by index
};

/// An outermost call, with what is needed to put kernels to it.
struct CallTree {
    std::vector<RecordedCall> calls;  // by (thread, start)
    std::vector<RecordedInner> inner;
    std::vector<std::uint32_t> threads;                               // of each call
    std::vector<std::pair<std::int64_t, std::uint32_t>> by_external;  // external id and call, ascending
    std::vector<std::pair<std::int64_t, std::uint32_t>> inner_by_external;
    std::vector<Wrapper> wrappers;                               // by (thread, start); none where there are no kernels
    std::vector<std::pair<std::int64_t, std::int64_t>> markers;  // what the program marked as steps
};

/// Nests the host's events; `events.host` is empty afterwards.
CallTree call_tree(RecordedEvents& events);

/// Time on which at least one of some intervals goes on; intervals are sorted by start.
class Cover {
public:
    Cover() = default;
    explicit Cover(std::vector<std::pair<std::int64_t, std::int64_t>> intervals);
    /// Of [start, end): how much is covered.
    std::int64_t within(std::int64_t start, std::int64_t end) const;

private:
    std::vector<std::int64_t> starts_, ends_, sums_;  // disjoint; sums_: of all before
};

/// Where steps begin; the last entry is where the last one ends. Fewer than two: no whole step.
std::vector<std::int64_t> step_bounds(const CallTree& tree, const Texts& texts);

}  // namespace rehearse::trace
