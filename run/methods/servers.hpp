// SPDX-License-Identifier: Apache-2.0
// Parameter servers, seen from a worker: it pushes gradients, or its model, and pulls what the servers answer. What a
// server does is in run/methods/server_shard.
#pragma once

#include <map>
#include <vector>

#include "run/methods/method.hpp"

namespace rehearse::run {

/// Whether a server makes a dense layer's gradient itself, from the sufficient factors that workers push: the inputs of
/// all rows, then their errors.
inline bool sends_factors(const PushPull& push_pull) { return push_pull.sent != push_pull.received; }

/// Pushes and pulls, and the broadcasts of what came among a group of which only the first rank pulls.
class ServersMethod : public Method {
public:
    explicit ServersMethod(RankContext& rank) : rank_(rank) {}
    bool prepare(ReadyStep& ready) override;
    std::int64_t loss_batch(std::int64_t batch) const override;
    /// Takes the weights that came; with elastic averaging, gives up what came.
    void end_step() override;

private:
    void prepare_push_pull(ReadyStep& ready, const PushPull& push_pull);
    void prepare_factors(ReadyStep& ready, const PushPull& push_pull);
    kernels::View pulled(int bucket);

    RankContext& rank_;
    /// By bucket: its layers go on with the weights of this step until it is over.
    std::map<int, std::vector<float>> pulled_;
};

}  // namespace rehearse::run
