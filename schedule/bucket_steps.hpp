// SPDX-License-Identifier: Apache-2.0
// Steps of buckets: gradients are brought together, weights updated. Asks the methods of training first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

/// Two vectors of so many elements become one: a pass over memory, as methods choose, pack and add up what they send.
inline Problem sum_of(std::int64_t elements) { return {Add{{elements}, 2}, Pass::forward, 1, DataType::f32}; }

class BucketSteps {
public:
    explicit BucketSteps(StepContext& context);

    /// Those of the schedule, in the order of the table.
    const std::vector<std::unique_ptr<MethodSteps>>& methods() const { return methods_; }

    /// Layer i has made a gradient of its weights, of the last micro-batch or not: what its bucket then does at once.
    void made_gradient(int i, bool last);
    /// What is left to be summed at the end of the backward pass: what another stage has, too; of `all` buckets where
    /// nothing is sent earlier.
    void sum_rest(bool all);
    void sum_and_update();

    // For methods.
    int count() const { return static_cast<int>(context_.part.buckets.size()); }
    /// Ranks that have the weights of a bucket.
    std::int64_t sharing(int b) const;
    /// In the name of a step that a bucket has once a micro-batch.
    std::string which_time() const;
    /// The usual collective of this kind on a bucket.
    Communicate message(int b, CollectiveKind kind) const;
    /// Before a bucket's gradients are brought together as vectors: the sum of what ranks that share samples have of
    /// them. Returns the axis of those with samples of their own (`none`: nobody else), and what they have to wait for.
    struct Summed {
        int along = -1;
        std::vector<int> after;
    };
    Summed sum_of_samples(int b);
    /// As a step, whose index is returned; without a `name` one that says bucket and kind.
    int append(Communicate action, std::vector<int> after, std::string name = "");

private:
    bool updates(int b) const;
    void sum(int b);
    void sum_up(int b);
    /// With the other stage that has a bucket's weights (a tied table).
    void sum_ties(int b);
    bool waits_for_tie(int b) const;
    std::int64_t elements_on_wire(int b) const;
    int micro_batch_of_sum() const;
    void update();

    StepContext& context_;
    const GradientSum& how_;
    const std::vector<Bucket>& buckets_;
    std::vector<int> closes_;  // by layer: the bucket whose last gradient it makes
    std::vector<std::unique_ptr<MethodSteps>> methods_;
    bool whole_ = false;  // gradients are brought together as vectors: those of all micro-batches, whole
};

}  // namespace rehearse::schedule
