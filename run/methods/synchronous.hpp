// SPDX-License-Identifier: Apache-2.0
// Synchronous data parallelism: ranks sum their gradients and have the same weights, or share them (ZeRO).
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "run/methods/method.hpp"

namespace rehearse::run {

/// All-reduces and reduce-scatters of gradients, all-gathers of weights, and the gradients of tables that two stages
/// share.
class SynchronousMethod : public Method {
public:
    explicit SynchronousMethod(RankContext& rank);
    bool prepare(ReadyStep& ready) override;
    void complete(std::span<ReadyStep> steps) override;
    std::int64_t loss_batch(std::int64_t batch) const override;

private:
    void prepare_tie(ReadyStep& ready, const Communicate& communicate);
    void add_up_micro_batches(ReadyStep& ready, const Communicate& communicate, kernels::View gradients);
    void send_as(ReadyStep& ready, DataType type);
    void stage(ReadyStep& ready);
    void average_what_is_shared(std::span<ReadyStep> steps) const;
    void spoil_what_is_let_go(std::span<ReadyStep> steps);
    void spoil(int bucket) const;

    RankContext& rank_;
    std::vector<std::vector<std::byte>> sent_;      // by bucket: gradients in the type that they are sent in
    std::vector<kernels::Device::Memory> staging_;  // where the host sends a device's gradients from
    /// By bucket whose gradients the ranks sum after every micro-batch: this rank's piece of the sums so far.
    std::map<int, std::vector<std::byte>> sums_;
};

}  // namespace rehearse::run
