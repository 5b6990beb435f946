// SPDX-License-Identifier: Apache-2.0
// Parameter servers, seen from a worker: it pushes gradients, or its model, and pulls what the servers answer. What a
// server does is in run/methods/server_shard.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "run/methods/method.hpp"

namespace rehearse::run {

/// Whether a server makes a dense layer's gradient itself, from the sufficient factors that workers push: the inputs of
/// all rows, then their errors.
inline bool sends_factors(const PushPull& push_pull) {
    return !push_pull.work.empty() && push_pull.work.front().pass == Pass::backward_weights;
}

/// Writes what a worker pushes of a bucket's gradients into `pushed`, in the fewer bits that the schedule says; what
/// these leave out stays in `left` for the next push. `unpack` returns the gradients that a server makes of it.
void pack_gradients(const Schedule& schedule, std::span<const float> gradients, std::vector<float>& left,
                    std::span<float> pushed);
void unpack_gradients(const Schedule& schedule, std::span<const float> pushed, std::span<float> gradients);

/// Pushes and pulls, and the broadcasts of what came among a group of which only the first rank pulls.
class ServersMethod : public Method {
public:
    explicit ServersMethod(RankContext& rank) : rank_(rank) {}
    bool prepare(ReadyStep& ready) override;
    std::int64_t loss_batch(std::int64_t batch) const override;
    /// Takes the weights that came; with elastic averaging, gives up what came.
    void end_step() override;
    void visit_state(const UseNumbers& use) override;

private:
    void prepare_push_pull(ReadyStep& ready, const PushPull& push_pull);
    void prepare_factors(ReadyStep& ready, const PushPull& push_pull);
    kernels::View pulled(int bucket, std::int64_t sent = 0);

    RankContext& rank_;
    /// By bucket: its layers go on with the weights of this step until it is over.
    std::map<int, std::vector<float>> pulled_;
    std::map<int, std::vector<float>> left_;  // by bucket: what has not been pushed yet
};

}  // namespace rehearse::run
