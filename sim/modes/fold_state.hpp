// SPDX-License-Identifier: Apache-2.0
// How far folded mode has got with a class's program. Times are seconds. Included by this folder's sources only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/index.hpp"
#include "sim/collective/collectives.hpp"
#include "sim/modes/active.hpp"

namespace rehearse::sim {

/// By rank: how much sooner than on the last one (0 or less, seconds). Nothing: on all ranks at once.
using Earlier = std::shared_ptr<const std::vector<double>>;

struct StreamState {
    Stream stream = Stream::compute;
    std::vector<int> queue{};  // steps
    std::size_t next = 0;
    bool on_the_way = false;  // the head of the queue has been sent and has not arrived
    double free = 0;
    Earlier earlier{};  // it is free
    // Of the only class's collectives:
    Collectives::Progress progress{};
    double over = 0;                  // when the last one had ended on every rank
    std::vector<FlowPhase> phases{};  // of the one that is under way
    double unhindered = 0;            // when it ends if nothing shares its links

    std::optional<int> head() const {
        if (next == queue.size()) return std::nullopt;
        return queue[next];
    }
};

struct ClassState {
    explicit ClassState(const std::vector<Step>& program)
        : steps(&program),
          start(program.size()),
          end(program.size()),
          done(program.size()),
          flow(program.size()),
          earlier(program.size()) {
        for (const Stream stream : streams_of(program)) streams.push_back({.stream = stream});
        for (std::size_t i = 0; i < program.size(); ++i) {
            stream_of.push_back(index_of(program[i].stream));
            streams[at(stream_of.back())].queue.push_back(static_cast<int>(i));
        }
    }

    const std::vector<Step>* steps;
    std::vector<double> start, end;
    std::vector<char> done;
    std::vector<std::int64_t> flow;
    std::vector<Earlier> earlier;  // it ended
    std::vector<StreamState> streams{};
    std::vector<int> stream_of{};  // by step: index into streams

    int index_of(Stream stream) const {
        return static_cast<int>(std::ranges::find(streams, stream, &StreamState::stream) - streams.begin());
    }
    StreamState& of_step(int step) { return streams[at(stream_of[at(step)])]; }
    /// The first of the stream's steps that is not over, unless it is on its way.
    std::optional<int> waiting(Stream stream) const {
        const StreamState& found = streams.at(at(index_of(stream)));
        return found.on_the_way ? std::nullopt : found.head();
    }
    /// When all that the step waits for has ended; nothing while that is not known.
    std::optional<double> needed(int step) const {
        double latest = 0;
        for (const int before : (*steps)[at(step)].after) {
            if (done[at(before)] == 0) return std::nullopt;
            latest = std::max(latest, end[at(before)]);
        }
        return latest;
    }
};

}  // namespace rehearse::sim
