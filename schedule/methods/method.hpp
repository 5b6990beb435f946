// SPDX-License-Identifier: Apache-2.0
// A method of training: how ranks bring together what they have learnt. A method is a row of methods(): its words in a
// plan with what they exclude, what it leaves in the schedule, and the steps that it adds to a rank's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/plan_words.hpp"

namespace rehearse::schedule {

struct StepContext;
class BucketSteps;
struct MemoryUse;
struct Stage;

/// What a method adds to the steps of one rank class, at the points of the step at which it is called.
class MethodSteps {
public:
    MethodSteps(StepContext& context, BucketSteps& buckets) : context_(context), buckets_(buckets) {}
    virtual ~MethodSteps() = default;
    MethodSteps(const MethodSteps&) = delete;
    MethodSteps& operator=(const MethodSteps&) = delete;

    /// Before the first micro-batch.
    virtual void begin() {}
    /// Whether ranks make the gradient of the weights in `bucket`; else somebody else does.
    virtual bool makes_gradient(int /*bucket*/) const { return true; }
    /// A layer of `bucket` has the gradient of its weights.
    virtual void made_gradient(int /*bucket*/) {}
    /// Brings the gradients of `bucket` together in a way of its own; false: they are summed.
    virtual bool sum(int /*bucket*/) { return false; }
    /// Whether some rank reads all of the sum of `bucket`, also where ranks keep their shares of it.
    virtual bool reads_sum(int /*bucket*/) const { return false; }
    /// The gradients of `bucket` have been summed, or would have been if anybody shared its weights.
    virtual void summed(int /*bucket*/) {}
    /// Whether the weights of `bucket` are updated after this part of the batch.
    virtual bool updates(int /*bucket*/) const { return true; }
    /// Has the weights updated in a way of its own; false: each rank updates its own.
    virtual bool update() { return false; }
    /// Before the updates, after all sums.
    virtual void before_updates() {}
    /// Step `step` has updated a bucket.
    virtual void updated(int /*step*/) {}
    /// After the last update.
    virtual void end() {}

protected:
    StepContext& context_;
    BucketSteps& buckets_;
};

struct Method {
    std::string_view name, summary;
    Vocabulary vocabulary;
    /// Fills in, of what the plan has left in Schedule::methods, what depends on the mesh, which is known by then.
    void (*describe)(const Plan& plan, Schedule& schedule) = nullptr;
    /// Whether weights change after each micro-batch.
    bool (*updates_often)(const Plan& plan) = nullptr;
    /// Whether ranks along data do not sum their gradients with each other.
    bool (*alone)(const Plan& plan) = nullptr;
    /// Whether ranks bring gradients together in a way of its own, which takes a bucket for one vector: a bucket then
    /// has either pieces of layers or whole ones (which all ranks that have pieces must change alike), and no table
    /// that two stages share.
    bool (*as_vectors)(const Plan& plan) = nullptr;
    /// Layers of a stage at which buckets have to begin.
    std::vector<int> (*bucket_begins)(const Plan& plan, const Stage& stage, const Schedule& schedule) = nullptr;
    /// Fills in what depends on the buckets of the part.
    void (*settle)(const Part& part, Schedule& schedule) = nullptr;
    /// Adds what a rank of the class keeps for this method, beside its network and an optimizer for it.
    void (*add_memory)(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use) = nullptr;
    /// Null where the schedule has nothing of this method.
    std::unique_ptr<MethodSteps> (*steps)(StepContext& context, BucketSteps& buckets) = nullptr;
};

/// The table, in methods/table.cpp.
std::span<const Method* const> methods();

}  // namespace rehearse::schedule
