// SPDX-License-Identifier: Apache-2.0
// Steps of the optimizer: on all weights of a bucket, or on this rank's piece of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "run/rank_context.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

class Updates {
public:
    explicit Updates(RankContext& rank);

    void prepare(ReadyStep& ready, const Update& update);
    /// Before an update runs: counts it, and divides its gradients by the loss scale.
    void begin(ReadyStep& ready, const Update& update);
    /// Updates of a bucket so far.
    std::int64_t& count(int bucket) { return counts_[bucket]; }
    /// Updates of each bucket so far, where all have had as many.
    std::int64_t count() const { return counts_.empty() ? 0 : counts_.begin()->second; }
    void set_count(std::int64_t count);

private:
    RankContext& rank_;
    std::map<int, std::int64_t> counts_;  // by bucket
    Arena room_;
    std::span<float> unscaled_;  // gradients of one bucket
};

}  // namespace rehearse::run
