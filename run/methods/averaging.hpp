// SPDX-License-Identifier: Apache-2.0
// Model averaging: ranks train models of their own and bring them together after some updates. Local SGD replaces them
// by their mean, elastic averaging (Zhang et al. 2015) lets each model and an average one pull at each other.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/methods/averaging.hpp"
#include "run/methods/method.hpp"

namespace rehearse::run {

/// The average moves towards a model by `share` of their difference; the model becomes by how much, which whoever sent
/// it gives up (Zhang et al. 2015, algorithm 1).
void pull_average(double share, std::span<float> model, std::span<float> average);
/// The same where the average also goes on by `momentum` of its last step, from `last`; that becomes where it was.
void pull_average(const Averaging& by, std::span<float> model, std::span<float> average, std::span<float> last);
/// What the average model becomes after a step: it moves by `share` of the sum of all models' differences from it, and
/// by `momentum` of how far it has moved in the step before (Koliousis et al. 2019). `last` is where it was then.
void move_average(const Averaging& by, std::span<const float> sum, std::span<float> average, std::span<float> last);

/// Sums of models, or of their differences from the average one, which each rank keeps.
class AveragingMethod : public Method {
public:
    explicit AveragingMethod(RankContext& rank) : rank_(rank) {}
    bool prepare(ReadyStep& ready) override;
    void complete(std::span<ReadyStep> steps) override;
    std::int64_t loss_batch(std::int64_t batch) const override;
    void visit_state(const UseNumbers& use) override;

private:
    /// What is kept of a bucket: the average model, where it was a step ago, how far this rank's model is from it, the
    /// sum of that.
    struct Average {
        std::vector<float> average, last, own, sum;
    };
    void prepare_mean(ReadyStep& ready, const Communicate& communicate) const;
    void prepare_differences(ReadyStep& ready, int bucket);
    void pull_together(int bucket);

    RankContext& rank_;
    std::map<int, Average> averages_;  // by bucket
};

}  // namespace rehearse::run
